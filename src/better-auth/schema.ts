import type { BetterAuthPluginDBSchema } from 'better-auth'
import type { WalletSettings } from './settings.ts'

/** Fields that the plugins add to sessions. Absent from sessions that were not made with a wallet. */
export const sessionFields = {
  /** The adapter whose rules the proof satisfied, such as `nimiq`. */
  walletAdapterId: { type: 'string', required: false, input: false },
  /** What identities of the adapter are compared by: see `ProvenIdentity`. */
  walletSubject: { type: 'string', required: false, input: false },
  /** Lower-case hex; empty if the adapter knows the wallet by its address only. */
  walletPublicKeyHex: { type: 'string', required: false, input: false },
  /** Canonical form. */
  walletAddress: { type: 'string', required: false, input: false },
  /** The cross-device order that made the session, if one did. */
  walletOrderId: { type: 'string', required: false, input: false },
  /** The known computer that the session came from, if it came from one. */
  walletComputerId: { type: 'string', required: false, input: false },
} as const satisfies BetterAuthPluginDBSchema[string]['fields']

/** The model of the marks of things that must happen only once; see `Marks`. */
const markModel = {
  fields: {
    key: { type: 'string', required: true, unique: true, input: false },
    expiresAt: { type: 'date', required: true, input: false, index: true },
  },
} as const satisfies BetterAuthPluginDBSchema[string]

/** Name of the model of the marks. */
export const markModelName = 'walletMark'

const userFields = {
  /** With `syncAddressToUser`: the address of the wallet that the user signed in with last, in canonical form. */
  walletAddress: { type: 'string', required: false, input: false },
  /** With `syncPublicKeyToUser`: that wallet's public key, lower-case hex. */
  walletPublicKeyHex: { type: 'string', required: false, input: false },
} as const satisfies BetterAuthPluginDBSchema[string]['fields']

/** The schema that both plugins need. The fields of the user exist only if an option fills them. */
export function walletSchema({ syncAddressToUser, syncPublicKeyToUser }: WalletSettings): WalletSchema {
  const { walletAddress, walletPublicKeyHex } = userFields
  const user = {
    fields: {
      ...(syncAddressToUser ? { walletAddress } : {}),
      ...(syncPublicKeyToUser ? { walletPublicKeyHex } : {}),
    },
  }
  // The type has all fields. One that is not kept is undefined, as any optional field may be.
  return { user, session: { fields: sessionFields }, [markModelName]: markModel } as WalletSchema
}

/** See {@link walletSchema}. A type, because an interface would not be assignable to Better Auth's type. */
export type WalletSchema = {
  user: { fields: typeof userFields }
  session: { fields: typeof sessionFields }
  walletMark: typeof markModel
}

const orderFields = {
  orderId: { type: 'string', required: true, unique: true, input: false },
  /** login or sign. */
  kind: { type: 'string', required: true, input: false },
  /** created, claimed, waiting_user, approved; finalized, rejected, cancelled, expired. */
  status: { type: 'string', required: true, input: false },
  /** Goes up by one with every change. A compare-and-set names it. */
  version: { type: 'number', required: true, input: false },
  /** The order as JSON: its texts, its history, the hashes of its tokens, the proof. It contains no token. */
  record: { type: 'string', required: true, input: false, returned: false },
  createdAt: { type: 'date', required: true, input: false },
  /** When the row may be deleted: ten minutes after the order is over. */
  expiresAt: { type: 'date', required: true, input: false, index: true },
} as const satisfies BetterAuthPluginDBSchema[string]['fields']

/** The model of the orders under its name. */
export function orderSchema(modelName: string): {
  crossDeviceOrder: { modelName: string; fields: typeof orderFields }
} {
  return { crossDeviceOrder: { modelName, fields: orderFields } }
}

/** Better Auth's key of the model of the orders, which does not depend on the name of its table. */
export const orderModel = 'crossDeviceOrder'
