import { generateKeyPair, type webcrypto } from 'node:crypto'
import { promisify } from 'node:util'
import { calculateJwkThumbprint } from 'jose'
import { p256KeyFrom } from '../base/p256.ts'
import type { Keyring } from '../base/token.ts'
import type { Store } from '../store/store.ts'
import { rotationKey } from './commands.ts'
import { type RecordToStore, type SealedRecords, UnknownSecretError } from './sealed-records.ts'

/** A private key as a JWK (RFC 7517), with what the public half says of itself. */
export interface SigningJwk extends webcrypto.JsonWebKey {
  readonly kty: 'RSA' | 'EC'
  readonly kid: string
  readonly alg: 'RS256' | 'ES256'
  readonly use: 'sig'
}

/** An RSA key, and the time from which on it signs, epoch milliseconds. */
interface StoredKey {
  readonly key: SigningJwk
  readonly from: number
}

/** Stored RSA keys, oldest first. */
interface StoredKeys {
  readonly keys: readonly StoredKey[]
}

const kind = 'signing-keys'
const id = 'rsa'

const rsaBits = 2048

interface KeyParts {
  readonly records: SealedRecords
  readonly keyring: Keyring
  readonly store: Store
}

/**
 * The keys that sign: RSA for RS256, made once and kept in the store under the secret, one for all instances; P-256
 * for ES256, one derived from each secret. The first of each algorithm signs. Makes another RSA key if an operator has
 * asked for one ({@link rotationKey}): in place of one that none of the secrets opens, it signs at once.
 *
 * `overlapMs` is the time in ms from the making of an RSA key until it signs, and for which the one before stays
 * afterwards: longer than an application keeps the key set of an instance that has not looked yet, and than any token
 * lives.
 *
 * @throws TypeError of one line if the stored key opens with none of the secrets, and no other is asked for.
 */
export async function signingKeys(parts: KeyParts, overlapMs: number): Promise<readonly SigningJwk[]> {
  const derived = await Promise.all(parts.keyring.derive('oidc signing key', []).map(derivedKey))
  const all = [...(await rsaKeys(parts, overlapMs)), ...derived]
  // Each once, although a list of secrets may have one twice.
  return [...new Map(all.map((key) => [key.kid, key])).values()]
}

/** The public halves. */
export function publicKeys(keys: readonly SigningJwk[]): readonly object[] {
  return keys.map(({ kty, kid, alg, use, n, e, crv, x, y }) =>
    kty === 'RSA' ? { kty, kid, alg, use, n, e } : { kty, kid, alg, use, crv, x, y },
  )
}

/** The RSA keys; the first signs. */
async function rsaKeys({ records, store }: KeyParts, overlapMs: number): Promise<readonly SigningJwk[]> {
  for (;;) {
    const isWanted = (await store.get(rotationKey)) !== undefined
    const found = await records.read<StoredKeys>(kind, id).catch((cause: unknown) => {
      if (!(cause instanceof UnknownSecretError)) throw cause
      // The secret leaked or is lost: a new key takes the place of the unreadable one.
      if (isWanted) return undefined
      throw new TypeError(
        'the RSA key of the OpenID Connect issuer was stored under another secret (COUNTERSIGN_SECRET): put that ' +
          'back at the end of the list, or, if it leaked or is lost, run countersign admin oidc rotate-key and ' +
          'start again',
        { cause },
      )
    })
    const now = store.now()
    // Of several instances at once, one stores its key, and the others read that.
    if (found === undefined) {
      const isMade = await records.put(undefined, keep({ keys: [{ key: await newRsaKey(), from: now }] }))
      if (isMade && isWanted) await store.take(rotationKey)
      continue
    }
    const { keys } = found.record
    // Once the next key has signed for so long, the tokens of a key have expired.
    const left = keys.filter((_, index) => {
      const next = keys[index + 1]
      return next === undefined || now < next.from + overlapMs
    })
    const isUnderWay = left.some(({ from }) => from > now)
    const next = isWanted && !isUnderWay ? [...left, { key: await newRsaKey(), from: now + overlapMs }] : left
    const isChanged = found.isOld || next.length !== keys.length || next.at(-1) !== keys.at(-1)
    if (isChanged && !(await records.replace(found, keep({ keys: next })))) continue
    if (isWanted) await store.take(rotationKey)
    // The newest that may sign is first.
    const maySign = next.filter(({ from }) => from <= now).reverse()
    const notYet = next.filter(({ from }) => from > now)
    return [...maySign, ...notYet].map(({ key }) => key)
  }
}

function keep(record: StoredKeys): RecordToStore {
  return { kind, id, record, life: 'forever' }
}

async function newRsaKey(): Promise<SigningJwk> {
  const { privateKey } = await promisify(generateKeyPair)('rsa', { modulusLength: rsaBits })
  return await named({ ...privateKey.export({ format: 'jwk' }), kty: 'RSA', alg: 'RS256', use: 'sig' })
}

async function derivedKey(secret: Uint8Array): Promise<SigningJwk> {
  return await named({ ...p256KeyFrom(secret, 'countersign oidc ES256'), alg: 'ES256', use: 'sig' })
}

async function named(key: Omit<SigningJwk, 'kid'>): Promise<SigningJwk> {
  const kid = await calculateJwkThumbprint(key as Parameters<typeof calculateJwkThumbprint>[0])
  return { ...key, kid } as SigningJwk
}
