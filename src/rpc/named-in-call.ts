/** What the message of a call names, whether it exists or not. */
export interface NamedInCall {
  readonly orderId?: string | undefined
  readonly adapterId?: string | undefined
  readonly address?: string | undefined
}

/**
 * Reads what a valid message names: its order, and the wallet of its proof. A caller can write anything there, even a token by
 * mistake: what does not look like such a name is left out.
 */
export function namedInCall(message: object): NamedInCall {
  const { orderId, adapterId, address, proof } = message as Fields
  return {
    orderId: matching(orderIdForm, orderId),
    adapterId: matching(adapterIdForm, proof?.adapterId ?? adapterId),
    address: matching(addressForm, proof?.address ?? address),
  }
}

/** The identifiers of orders: 128 bits. */
const orderIdForm = /^[A-Za-z0-9_-]{22}$/

const adapterIdForm = /^[a-z][a-z0-9-]{0,31}$/

/** Addresses of wallets, in groups or not, and of contracts (CAIP-10). Tokens, nonces, codes and signatures look otherwise. */
const addressForm =
  /^(NQ\d\d[ 0-9A-Z]{32,40}|(eip155:\d{1,20}:)?0x[0-9A-Fa-f]{40}|[1-9A-HJ-NP-Za-km-z]{32,42}|[1-9A-HJ-NP-Za-km-z]{44})$/

function matching(form: RegExp, text: string | undefined): string | undefined {
  return text !== undefined && form.test(text) ? text : undefined
}

/** The fields of the API's messages that name something. Their types are the same in all messages. */
interface Fields extends NamedInCall {
  readonly proof?: NamedInCall
}
