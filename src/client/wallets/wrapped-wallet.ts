import type { Wallet } from '../wallet.ts'
import type { HubAnswer } from './hub.ts'

/** A wallet that signs by a function of the caller's. It names no account: its texts are read already. */
export function signingAs({ adapterId }: Wallet, sign: Wallet['sign']): Wallet {
  return { ...(adapterId === undefined ? {} : { adapterId }), sign }
}

/** A wallet whose questions to its user, for its account and for a signature, all go through `ask`. */
export function asking(wallet: Wallet, ask: <T>(question: () => T) => Promise<Awaited<T>>): Wallet {
  const { adapterId } = wallet
  const getAddress = wallet.getAddress?.bind(wallet)
  const getAccount = wallet.getAccount?.bind(wallet)
  const onAccountChange = wallet.onAccountChange?.bind(wallet)
  return {
    ...(adapterId === undefined ? {} : { adapterId }),
    ...(getAddress === undefined ? {} : { getAddress }),
    ...(getAccount === undefined ? {} : { getAccount: () => ask(getAccount) }),
    ...(onAccountChange === undefined ? {} : { onAccountChange }),
    sign: (message) => ask(() => wallet.sign(message)),
  }
}

/** A wallet that has an answer to one text already, from another site. That answer counts once. */
export function answering(wallet: Wallet, answer: HubAnswer): Wallet {
  let isLeft = true
  return signingAs(wallet, (message) => {
    if (!isLeft || message !== answer.message) return wallet.sign(message)
    isLeft = false
    if (answer.signature === undefined) throw answer.error
    return answer.signature
  })
}
