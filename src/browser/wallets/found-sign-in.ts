import { given } from '../../shared/defined-fields.ts'
import type { SignInResult } from '../../shared/session.ts'
import { forgetSentSignIn, keepSentSignIn, type SentSignIn } from '../client/sent-sign-in.ts'
import type { SignInCalls } from '../client/sign-in.ts'
import { asked, type Wallet } from '../client/wallet.ts'
import type { FoundWallet } from './found.ts'
import { forgetHubAnswer, type HubAnswer, type HubOptions, leavesPage } from './hub.ts'

/** A sign-in that the page was left for, and what the user came back with. */
export interface ReturnedSignIn {
  readonly sent: SentSignIn
  readonly answer: HubAnswer
}

/** Options of {@link signInWithFound}. */
export interface FoundSignInOptions {
  readonly client: Pick<SignInCalls, 'issueNonce' | 'signInWallet'>
  /** The Nimiq Hub as it was given to `findWallets`. */
  readonly hub?: HubOptions | undefined
  /** What the wallet has signed already. */
  readonly returned?: ReturnedSignIn | undefined
  /** Asks the wallet's user a question, and says so on the page. It has to ask before anything is awaited. */
  readonly ask: <T>(question: () => T) => Promise<Awaited<T>>
  readonly autoPersistToken?: boolean | undefined
  readonly signal: AbortSignal
}

/**
 * Signs in with a wallet that was found. Call it in the user gesture. A wallet that takes the place of the page never
 * answers: its challenge is kept in the tab, for the page to go on with when it is loaded again. Rejects with a
 * `CountersignClientError`.
 */
export async function signInWithFound(found: FoundWallet, options: FoundSignInOptions): Promise<SignInResult> {
  const { client, hub, returned, ask, autoPersistToken, signal } = options
  const connecting = found.connect()
  const connected = connecting instanceof Promise ? await asked(() => ask(() => connecting), signal) : connecting
  const wallet = asking(returned === undefined ? connected : answering(connected, returned.answer), ask)
  let challenge = returned?.sent.challenge
  if (challenge === undefined && found.kind === 'window' && hub !== undefined && leavesPage(hub)) {
    challenge = await client.issueNonce({ signal })
    keepSentSignIn({ walletId: found.id, challenge })
  }
  const result = await client.signInWallet({ wallet, challenge, autoPersistToken, signal })
  forgetSentSignIn()
  if (hub !== undefined) forgetHubAnswer()
  return result
}

/** A wallet that signs by a function of the caller's. It names no account: its texts are read already. */
export function signingAs({ adapterId }: Wallet, sign: Wallet['sign']): Wallet {
  return { ...given({ adapterId }), sign }
}

/** A wallet whose questions to its user, for its account and for a signature, all go through `ask`. */
function asking(wallet: Wallet, ask: <T>(question: () => T) => Promise<Awaited<T>>): Wallet {
  const { adapterId } = wallet
  const getAddress = wallet.getAddress?.bind(wallet)
  const getAccount = wallet.getAccount?.bind(wallet)
  const onAccountChange = wallet.onAccountChange?.bind(wallet)
  return {
    ...given({ adapterId, getAddress, onAccountChange }),
    ...given({ getAccount: getAccount && (() => ask(getAccount)) }),
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
