/**
 * Backends on bare node:http that tell who is signed in: one by the session verifier, and as the floor one that keeps a record for
 * each token in a store of its own and reads it.
 */
import { hash } from 'node:crypto'
import { createServer } from 'node:http'
import { DatabaseSync } from 'node:sqlite'
import { createClient } from 'redis'
import { createSessionVerifier } from '../src/backend/index.ts'
import { listen } from './bare.ts'

/** The user's id of a token; `undefined` if nobody is signed in with it. */
type Check = (authorization: string) => Promise<string | undefined> | string | undefined

const [kind, where = '', ...rest] = process.argv.slice(2)
const check = kind === 'verifier' ? byVerifier(where, Number(rest[0])) : byRecord(await openStore(where, rest))

// Connections are idle while another backend has its turn.
const server = createServer({ keepAliveTimeout: 0 }, (request, response) => {
  request.on('data', () => {})
  request.on('end', async () => {
    const userId = await check(request.headers.authorization ?? '')
    const body = JSON.stringify({ userId })
    response.writeHead(userId === undefined ? 401 : 200, {
      'content-type': 'application/json',
      'content-length': Buffer.byteLength(body),
    })
    response.end(body)
  })
})
listen(server)
process.once('SIGTERM', () => process.exit())

function byVerifier(url: string, cacheSeconds: number): Check {
  const verifier = createSessionVerifier({ url, cacheSeconds })
  return async (authorization) => (await verifier.verify(new Headers({ authorization })))?.userId
}

function byRecord(read: (key: string) => Promise<unknown> | unknown): Check {
  return async (authorization) => {
    const record = await read(keyOf(authorization.slice('Bearer '.length)))
    return typeof record === 'string' ? JSON.parse(record).userId : undefined
  }
}

/** Reads one key of a store, in which a record of about the size of Countersign's is kept for each token. */
async function openStore(
  store: string,
  tokens: readonly string[],
): Promise<(key: string) => Promise<unknown> | unknown> {
  const record = JSON.stringify({ userId: 'user', publicKeyHex: 'a'.repeat(64), address: 'NQ', rest: 'x'.repeat(250) })
  const keys = tokens.map(keyOf)
  if (store.startsWith('redis:')) {
    // As Countersign's own client: no timer for each command.
    const client = createClient({ url: store, maintNotifications: 'disabled', commandOptions: { timeout: 0 } })
    await client.connect()
    await Promise.all(keys.map((key) => client.set(key, record)))
    return (key) => client.get(key)
  }
  const database = new DatabaseSync(':memory:')
  database.exec('CREATE TABLE entries (key TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT, WITHOUT ROWID')
  const insert = database.prepare('INSERT INTO entries (key, value) VALUES (?, ?)')
  for (const key of keys) insert.run(key, record)
  const select = database.prepare('SELECT value FROM entries WHERE key = ?')
  return (key) => select.get(key)?.value
}

function keyOf(token: string): string {
  return `floor:${hash('sha256', token, 'base64url')}`
}
