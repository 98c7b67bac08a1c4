import { describe, test } from 'vitest'
import { describeHostContract } from '../../../src/integrations/testing/index.ts'
import { openStore } from '../../../src/store/open.ts'
import type { Store } from '../../../src/store/store.ts'
import { onPostgres, ordinaryStore } from '../../support/ordinary-store.ts'
import { TestHost, trustedOrigin } from '../../support/standalone.ts'
import { redisUrl } from '../../support/stores.ts'

/** A standalone host as a process of its own would make it, over a store that it shares with others. */
function standalone(store: Store, secureCookie: boolean, cachedTokens?: number): TestHost {
  return new TestHost(store, { secureCookie, cachedTokens, syncs: true })
}

for (const [name, cachedTokens] of [
  ['the standalone host on SQLite', undefined],
  ['the standalone host without its cache of tokens', 0],
] as const) {
  describeHostContract(
    { describe, test },
    {
      name,
      trustedOrigin,
      async open() {
        const store = await openStore('sqlite::memory:')
        const host = () => standalone(store, true, cachedTokens)
        return { hosts: [host(), host()], close: () => store.close() }
      },
    },
  )
}

const shared = onPostgres
  ? { name: 'PostgreSQL', address: async () => (await ordinaryStore()).store }
  : { name: 'Redis', address: redisUrl }

describe.skipIf(shared.address === undefined)(`with ${shared.name}`, () => {
  describeHostContract(
    { describe, test },
    {
      name: `the standalone host on ${shared.name}`,
      trustedOrigin,
      async open() {
        const url = String(await shared.address?.())
        const [one, two] = [await openStore(url), await openStore(url)]
        return {
          hosts: [standalone(one, false), standalone(two, false)],
          close: async () => void (await Promise.all([one.close(), two.close()])),
        }
      },
    },
  )
})
