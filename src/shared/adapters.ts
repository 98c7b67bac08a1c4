/**
 * The built-in wallet adapters. What the server does with one is in `src/core/wallet/adapters.ts`, what browsers do
 * in `src/browser/wallets/find.ts`; both lists are held complete by {@link AdapterId}.
 */
export const builtInAdapters = {
  nimiq: { name: 'Nimiq', signsEd25519: true },
  ed25519: { name: 'Ed25519', signsEd25519: true },
  ethereum: { name: 'Ethereum', signsEd25519: false },
  solana: { name: 'Solana', signsEd25519: true },
} as const

/** Id of a built-in adapter. */
export type AdapterId = keyof typeof builtInAdapters

/** Ids of the built-in adapters. */
export const adapterIds: readonly AdapterId[] = Object.keys(builtInAdapters) as AdapterId[]

/** Whether an id is that of a built-in adapter. */
export function isBuiltIn(id: string | undefined): id is AdapterId {
  return id !== undefined && Object.hasOwn(builtInAdapters, id)
}
