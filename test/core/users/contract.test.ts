import { describe, test } from 'vitest'
import { Keyring } from '../../../src/base/token.ts'
import { OriginPolicy } from '../../../src/core/origin-policy.ts'
import { Sessions } from '../../../src/core/users/sessions.ts'
import { StandaloneHost } from '../../../src/core/users/standalone.ts'
import { describeHostContract } from '../../../src/integrations/testing/index.ts'
import { openStore } from '../../../src/store/open.ts'
import { onPostgres, ordinaryStore } from '../../support/ordinary-store.ts'
import { redisUrl } from '../../support/stores.ts'

const trustedOrigin = 'https://app.example'

/** A standalone host as a process of its own would make it, over a store that it shares with others. */
function standalone(
  store: Awaited<ReturnType<typeof openStore>>,
  https: boolean,
  cachedTokens?: number,
): StandaloneHost {
  const settings = { syncAddressToUser: true, syncPublicKeyToUser: true, secureCookie: () => https }
  const sessions = new Sessions(
    { ttlSeconds: 604_800, absoluteTtlSeconds: 2_592_000, cachedTokens },
    store,
    new Keyring(['a secret for tests and for nothing else']),
  )
  const origins = new OriginPolicy({ enforce: true, own: trustedOrigin, trusted: [trustedOrigin] })
  return new StandaloneHost({ ...settings, store, sessions, origins })
}

describeHostContract(
  { describe, test },
  {
    name: 'the standalone host on SQLite',
    trustedOrigin,
    async open() {
      const store = await openStore('sqlite::memory:')
      return { hosts: [standalone(store, true), standalone(store, true)], close: () => store.close() }
    },
  },
)

describeHostContract(
  { describe, test },
  {
    name: 'the standalone host without its cache of tokens',
    trustedOrigin,
    async open() {
      const store = await openStore('sqlite::memory:')
      return { hosts: [standalone(store, true, 0), standalone(store, true, 0)], close: () => store.close() }
    },
  },
)

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
