// The assertion is that it compiles, here and in a project that has the package installed (consumer.test.ts).
import {
  type AccountListener,
  CountersignClientError,
  createRestClient,
  type FinalizedOrder,
  type RestClient,
  readStoredToken,
  type SignInResult,
  signInWithWallet,
  type Wallet,
} from 'countersign/client/rest'

const wallet: Wallet | undefined = undefined

export async function signIn(): Promise<string | undefined> {
  try {
    const result: SignInResult = await signInWithWallet((url, init) => fetch(url, init), { wallet })
    return result.session.userId
  } catch (error) {
    if (error instanceof CountersignClientError && error.code === 'NETWORK') return readStoredToken()
    throw error
  }
}

const client: RestClient = createRestClient({ baseUrl: 'https://auth.example', basePath: '/api/auth' })

export async function desktop(): Promise<FinalizedOrder> {
  const order = await client.startOrder({ kind: 'login' })
  for await (const { status } of client.watchOrder(order)) if (status === 'approved') break
  return await client.finalizeOrder(order)
}

export function session(show: (address: string | undefined) => void, onAccount: AccountListener): () => void {
  client.onAccountChange(onAccount)
  return client.onSession((current) => show(current?.address))
}
