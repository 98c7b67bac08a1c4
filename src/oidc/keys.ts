import { generateKeyPair, type webcrypto } from 'node:crypto'
import { promisify } from 'node:util'
import { calculateJwkThumbprint } from 'jose'
import { p256KeyFrom } from '../base/p256.ts'
import type { Keyring } from '../base/token.ts'
import { type RecordToStore, type SealedRecords, UnknownSecretError } from './sealed-records.ts'

/** A private key as a JWK (RFC 7517), with what the public half says of itself. */
export interface SigningJwk extends webcrypto.JsonWebKey {
  readonly kty: 'RSA' | 'EC'
  readonly kid: string
  readonly alg: 'RS256' | 'ES256'
  readonly use: 'sig'
}

/** What is stored of RSA keys: the one that signs, first, and those before it. */
interface StoredKeys {
  readonly keys: readonly SigningJwk[]
}

const kind = 'signing-keys'
const id = 'rsa'

const rsaBits = 2048

/**
 * The keys that sign: RSA for RS256, made once and kept in the store under the secret, one for all instances; P-256
 * for ES256, one derived from each secret. The first of each algorithm signs.
 *
 * @throws TypeError of one line if the stored key opens with none of the secrets.
 */
export async function signingKeys(records: SealedRecords, keyring: Keyring): Promise<readonly SigningJwk[]> {
  const derived = await Promise.all(keyring.derive('oidc signing key', []).map(derivedKey))
  const all = [...(await rsaKeys(records)), ...derived]
  // Each once, although a list of secrets may have one twice.
  return [...new Map(all.map((key) => [key.kid, key])).values()]
}

/** The public halves. */
export function publicKeys(keys: readonly SigningJwk[]): readonly object[] {
  return keys.map(({ kty, kid, alg, use, n, e, crv, x, y }) =>
    kty === 'RSA' ? { kty, kid, alg, use, n, e } : { kty, kid, alg, use, crv, x, y },
  )
}

async function rsaKeys(records: SealedRecords): Promise<readonly SigningJwk[]> {
  for (;;) {
    const found = await records.read<StoredKeys>(kind, id).catch((cause: unknown) => {
      if (!(cause instanceof UnknownSecretError)) throw cause
      throw new TypeError(
        'the RSA key of the OpenID Connect issuer was stored under another secret (COUNTERSIGN_SECRET): put that back at the end of the list',
        { cause },
      )
    })
    // Of several instances at once, one stores its key, and the others read that.
    if (found === undefined) await records.create(keep({ keys: [await newRsaKey()] }))
    else if (!found.isOld || (await records.replace(found, keep({ keys: found.record.keys })))) {
      return found.record.keys
    }
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
  return {
    ...key,
    kid: await calculateJwkThumbprint(key as Parameters<typeof calculateJwkThumbprint>[0]),
  } as SigningJwk
}
