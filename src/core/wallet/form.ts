import { sha256 } from '@noble/hashes/sha2.js'
import { base64urlnopad } from '@scure/base'
import { bytesToHex } from '../../shared/hex.ts'
import type { Challenge } from '../challenge.ts'
import type { SignInForm } from './wallet.ts'

/** A challenge as the service stored it. */
export interface StoredChallenge extends Omit<Challenge, 'challengeId'> {
  /** The plain text. */
  readonly message: string
  /** Present in an order's challenge. */
  readonly orderId?: string
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

/** An account as written in a form. */
export interface FormAccount {
  readonly address: string
  /** Absent: the form has no such line. */
  readonly chainId?: string | undefined
}

/**
 * Writes a form in the layout that EIP-4361 and Sign-In With Solana share. `chain` is the name of the chain in the
 * first line. Sources: EIP-4361; phantom/sign-in-with-solana.
 */
export function formText(chain: string, form: SignInForm, { address, chainId }: FormAccount): string {
  return [
    `${form.domain} wants you to sign in with your ${chain} account:`,
    address,
    '',
    form.statement,
    '',
    `URI: ${form.uri}`,
    'Version: 1',
    ...(chainId === undefined ? [] : [`Chain ID: ${chainId}`]),
    `Nonce: ${form.nonce}`,
    `Issued At: ${new Date(form.issuedAt).toISOString()}`,
    `Expiration Time: ${new Date(form.expiresAt).toISOString()}`,
    'Resources:',
    ...form.resources.map((resource) => `- ${resource}`),
  ].join('\n')
}
