// The assertion is that it compiles, here and in a project that has the package installed (consumer.test.ts).
import type { Transport } from '@connectrpc/connect'
import {
  type AccountListener,
  type CountersignClient,
  CountersignClientError,
  type CountersignClientOptions,
  createCountersignClient,
  type FinalizedOrder,
  readStoredToken,
  type SignInResult,
  signInWithWallet,
  type Wallet,
} from 'countersign/client/connect'

declare const transport: Transport
const wallet: Wallet | undefined = undefined

export async function signIn(): Promise<string | undefined> {
  try {
    const result: SignInResult = await signInWithWallet(transport, { wallet })
    return result.session.userId
  } catch (error) {
    if (error instanceof CountersignClientError && error.code === 'NETWORK') return readStoredToken()
    throw error
  }
}

// @ts-expect-error: a transport is needed.
createCountersignClient({ baseUrl: 'https://auth.example' })
const options: CountersignClientOptions = { transport, baseUrl: 'https://auth.example', tokenStorageKey: 'token' }
const client: CountersignClient = createCountersignClient(options)

export async function desktop(): Promise<FinalizedOrder> {
  const order = await client.startOrder({ kind: 'login' })
  for await (const { status } of client.watchOrder(order)) if (status === 'approved') break
  return await client.finalizeOrder(order)
}

export function session(show: (address: string | undefined) => void, onAccount: AccountListener): () => void {
  client.onAccountChange(onAccount)
  return client.onSession((current) => show(current?.address))
}
