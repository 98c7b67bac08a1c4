import { accessTokens } from './mutations/access-tokens.ts'
import { doors } from './mutations/doors.ts'
import { floods } from './mutations/floods.ts'
import type { Mutation } from './mutations/mutation.ts'
import { operators } from './mutations/operators.ts'
import { orders } from './mutations/orders.ts'
import { pages } from './mutations/pages.ts'
import { proofs } from './mutations/proofs.ts'
import { races } from './mutations/races.ts'
import { relay } from './mutations/relay.ts'
import { secrets } from './mutations/secrets.ts'
import { surroundings } from './mutations/surroundings.ts'
import { wallets } from './mutations/wallets.ts'

/** Every defence that SECURITY.md names. A new one is one more entry in its group, and its tests go into the table there. */
export const mutations: readonly Mutation[] = [
  ...proofs,
  ...pages,
  ...orders,
  ...relay,
  ...secrets,
  ...races,
  ...floods,
  ...surroundings,
  ...wallets,
  ...accessTokens,
  ...doors,
  ...operators,
]
