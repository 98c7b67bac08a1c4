import { describe, test } from 'vitest'
import { betterAuthHost } from '../../src/better-auth/index.ts'
import { describeHostContract } from '../../src/integrations/testing/index.ts'
import { authStorages, makeAuth } from './support.ts'

const trustedOrigin = 'https://app.example'

for (const [name, storage] of authStorages) {
  describeHostContract(
    { describe, test },
    {
      name: `Better Auth on ${name}`,
      trustedOrigin,
      async open() {
        const kept = await storage()
        const make = async () =>
          betterAuthHost(await makeAuth({ storage: async () => kept, auth: { trustedOrigins: [trustedOrigin] } }))
        return { hosts: [await make(), await make()] }
      },
    },
  )
}
