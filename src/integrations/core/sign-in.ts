import { base64urlnopad } from '@scure/base'
import { challengeMessage, nonceTtl } from '../../core/challenge-text.ts'
import { makeChallenge, requireLive } from '../../core/sign-in/sign-in-challenge.ts'
import { walletAdapters } from '../../core/wallet/adapters.ts'
import { portableVerifier } from '../../core/wallet/ed25519.ts'
import { Prover } from '../../core/wallet/prover.ts'
import type { Proof, ProvenIdentity, WalletAdapter, WalletNamed } from '../../core/wallet/wallet.ts'
import { given, pick } from '../../shared/defined-fields.ts'
import { CountersignError, invalidField } from '../../shared/errors.ts'
import { parseOrigin } from '../../shared/origin.ts'
import { isPlainLine } from '../../shared/plain-line.ts'

/** The kinds of wallets that may sign in. */
export interface SignInAdapterOptions {
  /** Ids of built-in ones, or adapters of your own. Default: nimiq, ed25519. */
  readonly adapters?: readonly (string | WalletAdapter)[]
  /**
   * JSON-RPC servers of EVM chains by chain id, for contract wallets of ethereum (EIP-1271, EIP-6492). Default:
   * none; contract wallets cannot sign in.
   */
  readonly evmRpc?: Readonly<Record<string, string>>
}

/** Options of {@link createSignInChallenge}. */
export interface SignInChallengeOptions extends SignInAdapterOptions {
  /** Name of the application, one line: the wallet shows it. */
  readonly appName: string
  /** Origin of the page that signs in, such as https://app.example. Take it from your configuration. */
  readonly origin: string
  /**
   * The adapter that is going to sign. Wallets of ethereum and solana sign a form of their own, which `message` then
   * is; without it, `message` is the plain text, which wallets of nimiq and ed25519 sign. A proof of another adapter,
   * address or chain than the named one is refused.
   */
  readonly adapterId?: string | undefined
  /** Address of the wallet that is going to sign; required by the form of ethereum and solana. */
  readonly address?: string | undefined
  /** Chain of that account: "1" for ethereum, "mainnet" for solana. Default: as the form has it. */
  readonly chainId?: string | undefined
  /** Lifetime in seconds, 1 to 3600. Default: 300. */
  readonly ttlSeconds?: number
}

/** A challenge as JSON can keep it. Times are epoch milliseconds. */
export interface SignInChallenge {
  readonly appName: string
  readonly origin: string
  /** 256 random bits in base64url. A key to keep the challenge under. */
  readonly nonce: string
  readonly issuedAt: number
  readonly expiresAt: number
  /** The exact text for the wallet to sign. */
  readonly message: string
  /** The wallet that the options named; absent if they named none. A proof of another one is refused. */
  readonly askedFor?: WalletNamed
}

/** Options of {@link verifySignIn}. */
export interface VerifySignInOptions extends SignInAdapterOptions {
  /** What {@link createSignInChallenge} returned, as your server kept it; never what a client sent. */
  readonly challenge: SignInChallenge
  /** The proof as the client sent it. */
  readonly proof: Proof
  /** The header `Origin` of the request that brought the proof. */
  readonly origin: string | null | undefined
}

const defaultAdapters = ['nimiq', 'ed25519']

/**
 * Makes a challenge for a wallet to sign. Keep it on the server, bound to the browser that asked for it (by an HttpOnly
 * cookie, say), and send `message` to the page.
 *
 * @throws TypeError for options that are wrong.
 * @throws CountersignError INVALID_REQUEST for an address or chain that no such wallet can have, ADAPTER_UNKNOWN.
 */
export function createSignInChallenge(options: SignInChallengeOptions): SignInChallenge {
  const { appName, ttlSeconds = nonceTtl.defaultSeconds, adapterId, address, chainId } = options
  const origin = parseOrigin(options.origin)
  if (origin === undefined) throw new TypeError('origin must be one such as https://app.example')
  if (typeof appName !== 'string' || appName === '' || !isPlainLine(appName)) {
    throw new TypeError('appName must be one line of text')
  }
  const { minSeconds, maxSeconds } = nonceTtl
  if (!Number.isInteger(ttlSeconds) || ttlSeconds < minSeconds || ttlSeconds > maxSeconds) {
    throw new TypeError(`ttlSeconds must be a whole number from ${minSeconds} to ${maxSeconds}`)
  }
  const nonce = base64urlnopad.encode(crypto.getRandomValues(new Uint8Array(32)))
  const challenge = makeChallenge({ nonce, appName, origin, ttlSeconds, now: Date.now() })
  const { issuedAt, expiresAt } = challenge
  const askedFor = given({ adapterId, address, chainId })
  const message = proverOf(options).textFor(challenge, askedFor, origin)
  const isNamed = Object.keys(askedFor).length > 0
  return { appName, origin, nonce, issuedAt, expiresAt, message, ...(isNamed ? { askedFor } : {}) }
}

/**
 * Checks a proof over a challenge, and resolves with the wallet that it proves. Use each challenge once: take it out of
 * where it is kept, in one atomic step, before this call. The text is made again from the challenge and the account
 * that the proof names; no text of the client counts.
 *
 * @throws CountersignError NONCE_EXPIRED, ORIGIN_MISMATCH, SIGNATURE_INVALID, ADDRESS_MISMATCH (the proof's address, or
 * the wallet that the challenge was asked for with, is another one than signed), ADAPTER_UNKNOWN,
 * INVALID_REQUEST for a malformed key, signature or address; for contract wallets CONTRACT_WALLET_NEEDS_RPC and
 * EVM_RPC_UNAVAILABLE.
 * @throws TypeError if `challenge` is none.
 */
export async function verifySignIn(options: VerifySignInOptions): Promise<ProvenIdentity> {
  const { challenge, proof, origin } = options
  const stored = storedChallenge(challenge)
  requireLive(stored, Date.now())
  if (origin !== stored.origin) {
    throw new CountersignError('ORIGIN_MISMATCH', `The sign-in was begun at ${stored.origin}; finish it there`, {
      metadata: { expected: stored.origin, bound_to: 'nonce' },
    })
  }
  const { identity } = await proverOf(options).prove(stored, proofOf(proof), { pageOrigin: stored.origin })
  return identity
}

function proverOf({ adapters = defaultAdapters, evmRpc }: SignInAdapterOptions): Prover {
  return new Prover(walletAdapters(adapters, { evmRpc }), portableVerifier)
}

/** The challenge with its plain text. A challenge without one of its fields is a mistake in the caller's code. */
function storedChallenge(challenge: SignInChallenge) {
  const { appName, origin, nonce, issuedAt, expiresAt, askedFor } = challenge
  const named = pick(askedFor ?? {}, ['adapterId', 'address', 'chainId'])
  const texts = [appName, origin, nonce, ...Object.values(named)]
  const hasTexts = texts.every((text) => typeof text === 'string') && parseOrigin(origin) === origin
  if (!hasTexts || typeof (askedFor ?? {}) !== 'object' || ![issuedAt, expiresAt].every(Number.isSafeInteger)) {
    throw new TypeError('challenge must be what createSignInChallenge returned')
  }
  const lines = { action: 'auth.login', challengeId: 'login', nonce, origin, issuedAt, expiresAt } as const
  return { ...lines, askedFor: named, message: challengeMessage(appName, lines) }
}

/** The fields of a proof, which is a client's JSON. */
function proofOf(proof: Proof): Proof {
  const { publicKeyHex = '', signatureHex, address, adapterId, chainId } = proof ?? {}
  const texts = { publicKeyHex, signatureHex, address, adapterId, chainId }
  for (const [field, text] of Object.entries(texts)) {
    if (typeof text === 'string' ? text.length <= maxTextLength : text === undefined && field !== 'signatureHex')
      continue
    throw invalidField(field, `${field} must be text of at most ${maxTextLength} characters`)
  }
  return texts
}

/** Most characters of a field: a signature of a contract wallet has 16 KiB at most, as hex. */
const maxTextLength = 32_768
