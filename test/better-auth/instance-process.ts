/**
 * A Better Auth server with the plugins as a process of its own: `instance-process.ts <database file> <options as
 * JSON>`. It writes its port to standard output.
 */
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { DatabaseSync } from 'node:sqlite'
import { type BetterAuthOptions, betterAuth, type DBAdapter } from 'better-auth'
import { getAdapter } from 'better-auth/db/adapter'
import { toNodeHandler } from 'better-auth/node'
import { crossDevice, walletSignIn } from '../../src/better-auth/index.ts'
import type { InstanceOptions } from './instances.ts'
import { openRedisStorage } from './redis-storage.ts'

const [file = '', json = '{}'] = process.argv.slice(2)
const { transactions, gate, gateAfter, redis } = JSON.parse(json) as InstanceOptions

const options = {
  database: new DatabaseSync(file, { timeout: 5000 }),
  baseURL: 'http://localhost:3000',
  secret: 'a secret for tests, not for anything else',
  ...(redis === undefined ? {} : { secondaryStorage: (await openRedisStorage(redis)).storage }),
  logger: { disabled: true },
  plugins: [walletSignIn({ appName: 'App' }), crossDevice({ appName: 'App' })],
  databaseHooks: {
    session: {
      create: {
        async before() {
          // Stands still here until the test says so.
          if (gate !== undefined) await fetch(gate)
        },
        async after() {
          if (gateAfter !== undefined) await fetch(gateAfter)
        },
      },
    },
  },
} satisfies BetterAuthOptions
const adapter = await getAdapter(options)
const plain: DBAdapter = { ...adapter, transaction: async (run) => await run(adapter) }
const auth = betterAuth({ ...options, database: () => (transactions ? adapter : plain) })

const server = createServer(toNodeHandler(auth))
server.listen(0, '127.0.0.1', () => process.stdout.write(`${(server.address() as AddressInfo).port}\n`))
