// The assertion is that it compiles, here and in a project that has the package installed (consumer.test.ts).
import {
  CountersignClientError,
  readStoredToken,
  type SignInResult,
  signInWithWallet,
  type Wallet,
} from 'countersign/client/direct'

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
