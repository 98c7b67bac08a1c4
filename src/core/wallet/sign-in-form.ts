import { sha256 } from '@noble/hashes/sha2.js'
import { base64urlnopad } from '@scure/base'
import { bytesToHex } from '../../shared/hex.ts'
import { type NamedAccount, signInText } from '../../shared/sign-in-text.ts'
import type { Challenge } from '../challenge-text.ts'
import type { SignInForm, WalletNamed } from './wallet.ts'

/** A challenge as the service stored it. */
export interface StoredChallenge extends Omit<Challenge, 'challengeId'> {
  /** The plain text. */
  readonly message: string
  /** Present in an order's challenge. */
  readonly orderId?: string
  /** The account of a nonce whose form the caller writes, as far as it was named: a proof has to name the same. */
  readonly named?: FormNamed
  /** The wallet that a nonce with a text was asked for with, as far as it was named: a proof has to be of the same. */
  readonly askedFor?: WalletNamed
}

/** The parts of an account that a form writes, as far as they are named. */
interface AccountNamed {
  readonly address?: string
  readonly chainId?: string
}

/** An account as far as a caller named it, each part as the adapter's form writes it. */
export interface FormNamed extends AccountNamed {
  readonly adapterId: string
}

/**
 * The form of a sign-in, a link, or an order for either, for the page at `pageOrigin` that calls the wallet. It follows
 * from what is stored and the page's origin alone.
 */
export function signInForm(challenge: StoredChallenge, pageOrigin: string): SignInForm {
  const { message, nonce, origin, issuedAt, expiresAt } = challenge
  const bound = base64urlnopad.encode(sha256(new TextEncoder().encode(message)))
  return {
    domain: new URL(pageOrigin).host,
    uri: pageOrigin,
    statement: statementOf(challenge),
    nonce: bytesToHex(base64urlnopad.decode(nonce)),
    issuedAt,
    expiresAt,
    // The page that approves an order may be the service's own. The page that started it is named too.
    resources: [`urn:countersign:sha256:${bound}`, ...(challenge.orderId === undefined ? [] : [origin])],
  }
}

/** Fixed, because EIP-4361 allows few characters here and wallets show it prominently. */
function statementOf({ action, orderId }: StoredChallenge): string {
  if (action === 'auth.link') {
    return orderId === undefined
      ? 'Add this wallet to your account.'
      : 'Add this wallet to an account on another device.'
  }
  return orderId === undefined ? 'Sign in.' : 'Sign in on another device.'
}

/** A form field by field, each as the text has it, with the account as far as it is named. */
export interface FormFields extends AccountNamed {
  readonly domain: string
  readonly uri: string
  readonly version: string
  readonly statement: string
  readonly nonce: string
  readonly issuedAt: string
  readonly expirationTime: string
  readonly resources: string[]
}

/** The fields of a form for an account. */
export function formFields(form: SignInForm, account: AccountNamed): FormFields {
  const { domain, uri, statement, nonce, issuedAt, expiresAt, resources } = form
  return {
    domain,
    uri,
    version: '1',
    statement,
    nonce,
    issuedAt: new Date(issuedAt).toISOString(),
    expirationTime: new Date(expiresAt).toISOString(),
    resources: [...resources],
    ...account,
  }
}

/** Writes a form for an account. `chain` is the name of the chain in the first line. */
export function formText(chain: string, form: SignInForm, account: NamedAccount): string {
  return signInText(chain, formFields(form, {}), account)
}
