import type { AuthContext } from '@better-auth/core'
import type { NonceKeeper, NonceStore } from '../core/sign-in/nonce.ts'
import { Marks } from './marks.ts'

/** Time for which an expired nonce is kept, in ms, so that a user who took too long gets NONCE_EXPIRED. */
const afterlifeMs = 60_000

/**
 * Nonces as Better Auth's verification values: in its secondary storage if it has one, otherwise in its database.
 * Consuming one is atomic in both.
 */
export function verificationNonces({ internalAdapter }: AuthContext): NonceStore {
  const identifierOf = (key: string): string => `countersign:${key}`
  return {
    get: async (key) => (await internalAdapter.findVerificationValue(identifierOf(key)))?.value,
    set: async (key, value, { ttlSeconds }) =>
      await internalAdapter.createVerificationValue({
        identifier: identifierOf(key),
        value,
        expiresAt: new Date(Date.now() + ttlSeconds * 1000 + afterlifeMs),
      }),
    delete: async (key) => await internalAdapter.deleteVerificationByIdentifier(identifierOf(key)),
    take: async (key) => (await internalAdapter.consumeVerificationValue(identifierOf(key)))?.value,
  }
}

/** Marks of used nonces, for an application's own nonce store without an atomic `take`. */
export function usedNonces(context: AuthContext): NonceKeeper {
  const unused = async (): Promise<undefined> => undefined
  return {
    now: Date.now,
    async create(key, _value, life) {
      const marks = new Marks(context)
      await marks.sweep()
      return await marks.make(key, new Date(life === 'forever' ? 8.64e15 : Date.now() + life.ttlMs))
    },
    get: unused,
    take: unused,
  }
}
