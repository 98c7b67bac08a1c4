/**
 * The peer: Better Auth's own sign-in with Ethereum, on bare node:http. Signatures are verified by viem, as its
 * documentation shows. Users are in SQLite in memory, nonces and sessions in Redis.
 */
import { randomBytes } from 'node:crypto'
import { createServer } from 'node:http'
import { DatabaseSync } from 'node:sqlite'
import { type BetterAuthOptions, betterAuth } from 'better-auth'
import { getMigrations } from 'better-auth/db/migration'
import { toNodeHandler } from 'better-auth/node'
import { bearer, siwe } from 'better-auth/plugins'
import { createClient } from 'redis'
import { verifyMessage } from 'viem'
import { publicUrl } from '../servers.ts'
import { listen } from './listen.ts'

const [redisUrl = ''] = process.argv.slice(2)
const database = new DatabaseSync(':memory:')

const options = {
  baseURL: publicUrl,
  secret: 'a secret for benchmarks and for nothing else',
  database,
  secondaryStorage: await openStorage(redisUrl),
  logger: { disabled: true },
  rateLimit: { enabled: false },
  telemetry: { enabled: false },
  plugins: [
    siwe({
      domain: new URL(publicUrl).host,
      getNonce: async () => randomBytes(16).toString('hex'),
      verifyMessage: async ({ message, signature, address }) =>
        await verifyMessage({ address: address as `0x${string}`, message, signature: signature as `0x${string}` }),
    }),
    bearer(),
  ],
} satisfies BetterAuthOptions

async function openStorage(url: string): Promise<NonNullable<BetterAuthOptions['secondaryStorage']>> {
  const client = createClient({ url, maintNotifications: 'disabled', commandOptions: { timeout: 0 } })
  await client.connect()
  return {
    get: (key) => client.get(key),
    getAndDelete: (key) => client.getDel(key),
    set: async (key, value, ttlSeconds) => {
      await client.set(key, value, ttlSeconds ? { expiration: { type: 'EX', value: ttlSeconds } } : {})
    },
    delete: async (key) => {
      await client.del(key)
    },
    increment: async (key, ttlSeconds) => {
      const count = await client.incr(key)
      if (count === 1) await client.expire(key, ttlSeconds)
      return count
    },
  }
}

const { runMigrations } = await getMigrations(options)
await runMigrations()
// Its own migration makes none, and each sign-in would read the whole table.
database.exec('CREATE INDEX walletAddress_by_address ON walletAddress (address, chainId)')

const handler = toNodeHandler(betterAuth(options))
// Connections are idle while others have their turn.
listen(createServer({ keepAliveTimeout: 0 }, (request, response) => void handler(request, response)))
process.once('SIGTERM', () => process.exit())
