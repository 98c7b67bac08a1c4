import type { BetterAuthPluginDBSchema } from 'better-auth'

/** What a session made by a wallet carries besides. Absent on the sessions that Better Auth made in other ways. */
const sessionFields = {
  /** The adapter whose rules the proof satisfied, such as `nimiq`. */
  walletAdapterId: { type: 'string', required: false, input: false },
  /** 64 lower-case hex characters. */
  walletPublicKeyHex: { type: 'string', required: false, input: false },
  /** Grouped form. */
  walletAddress: { type: 'string', required: false, input: false },
  /** The cross-device order that made the session, when one did. */
  walletOrderId: { type: 'string', required: false, input: false },
} as const satisfies BetterAuthPluginDBSchema[string]['fields']

/** Things that were done and may not be done again; see `Marks`. */
const markModel = {
  fields: {
    key: { type: 'string', required: true, unique: true, input: false },
    expiresAt: { type: 'date', required: true, input: false, index: true },
  },
} as const satisfies BetterAuthPluginDBSchema[string]

/** Name of the model of the marks. */
export const markModelName = 'walletMark'

const userFields = {
  /** With `syncAddressToUser`: the address of the wallet that the user proved last, grouped form. */
  walletAddress: { type: 'string', required: false, input: false },
  /** With `syncPublicKeyToUser`: its public key, 64 lower-case hex characters. */
  walletPublicKeyHex: { type: 'string', required: false, input: false },
} as const satisfies BetterAuthPluginDBSchema[string]['fields']

/** Which of the user's fields are kept. */
export interface SyncedFields {
  readonly syncAddressToUser: boolean
  readonly syncPublicKeyToUser: boolean
}

/** What both plugins need. The user's fields are in the database only where an option fills them. */
export function walletSchema({ syncAddressToUser, syncPublicKeyToUser }: SyncedFields): WalletSchema {
  const { walletAddress, walletPublicKeyHex } = userFields
  const user = {
    fields: {
      ...(syncAddressToUser ? { walletAddress } : {}),
      ...(syncPublicKeyToUser ? { walletPublicKeyHex } : {}),
    },
  }
  // Typed with all of them: what is not kept is undefined, as a field that is not required may be.
  return { user, session: { fields: sessionFields }, [markModelName]: markModel } as WalletSchema
}

/** See {@link walletSchema}. A type and no interface, which would not be assignable to Better Auth's. */
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
  /** Rises by one with every change: what a compare-and-set names. */
  version: { type: 'number', required: true, input: false },
  /** The order as JSON: what it asks, its history, the hashes of its tokens, the proof. No token is in it. */
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

/** What Better Auth knows the model of the orders by, whatever its table is called. */
export const orderModel = 'crossDeviceOrder'
