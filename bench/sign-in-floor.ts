/**
 * The floors for sign-ins over gRPC: the least that issues and verifies real nonces on bare node:http2. One keeps a session and
 * nothing else, the other leaves and answers the same as Countersign. bench/README.md says what they do and leave out.
 */
import { createPublicKey, hash, randomBytes, verify } from 'node:crypto'
import { createServer, type IncomingHttpHeaders, type OutgoingHttpHeaders, type ServerHttp2Stream } from 'node:http2'
import { DatabaseSync } from 'node:sqlite'
import { create, fromBinary, toBinary } from '@bufbuild/protobuf'
import { createClient } from 'redis'
import { SignInService } from '../gen/server/countersign/v1/sign_in_service_pb.ts'
import { nimiq } from '../src/wallet/nimiq.ts'
import { answerGrpc, listen } from './bare.ts'
import { enveloped, pathOf } from './grpc.ts'

const { issueNonce, verifySignIn } = SignInService.method
const nonceMs = 300_000
const sessionMs = 7 * 24 * 3_600_000

/** The steps of a sign-in, one command or statement each. */
interface Steps {
  set(key: string, value: string, ttlMs: number): unknown
  take(key: string): unknown
  get(key: string): unknown
  addMember(set: string, member: string, expiresAt: number): unknown
}

async function openRedis(url: string): Promise<Steps> {
  // As Countersign's own client: no timer for each command.
  const client = createClient({ url, maintNotifications: 'disabled', commandOptions: { timeout: 0 } })
  await client.connect()
  return {
    set: (key, value, ttlMs) => client.set(key, value, { expiration: { type: 'PX', value: ttlMs } }),
    take: (key) => client.getDel(key),
    get: (key) => client.get(key),
    addMember: (set, member, expiresAt) => client.zAdd(set, { score: expiresAt, value: member }),
  }
}

function openMemory(): Steps {
  const database = new DatabaseSync(':memory:')
  database.exec(
    `CREATE TABLE entries (key TEXT PRIMARY KEY, value TEXT NOT NULL, expires_at INTEGER NOT NULL) STRICT, WITHOUT ROWID;
     CREATE TABLE members (set_key TEXT NOT NULL, member TEXT NOT NULL, expires_at INTEGER NOT NULL,
       PRIMARY KEY (set_key, member)) STRICT, WITHOUT ROWID`,
  )
  const insert = database.prepare('INSERT INTO entries (key, value, expires_at) VALUES (?, ?, ?)')
  const remove = database.prepare('DELETE FROM entries WHERE key = ? AND expires_at > ? RETURNING value')
  const read = database.prepare('SELECT value FROM entries WHERE key = ? AND expires_at > ?')
  const addMember = database.prepare('INSERT INTO members (set_key, member, expires_at) VALUES (?, ?, ?)')
  return {
    set: (key, value, ttlMs) => insert.run(key, value, Date.now() + ttlMs),
    take: (key) => remove.all(key, Date.now())[0]?.value,
    get: (key) => read.get(key, Date.now())?.value,
    addMember: (set, member, expiresAt) => addMember.run(set, member, expiresAt),
  }
}

/** Answers one call; throws if it is not a sign-in. `answerHeaders` go out with the answer. */
type Answer = (
  message: Uint8Array,
  headers: IncomingHttpHeaders,
  answerHeaders: OutgoingHttpHeaders,
) => Promise<Uint8Array>

const answers: Readonly<Record<string, Answer>> = {
  [pathOf(issueNonce)]: async (bytes, headers) => {
    fromBinary(issueNonce.input, bytes)
    const nonceId = randomBytes(16).toString('base64url')
    const nonce = randomBytes(32).toString('base64url')
    const { origin = '' } = headers
    const issuedAt = Date.now()
    const expiresAt = issuedAt + nonceMs
    const message = `Countersign requests authentication
Action: auth.login
Origin: ${origin}
Challenge ID: login
Nonce: ${nonce}
Issued At: ${new Date(issuedAt).toISOString()}
Expires At: ${new Date(expiresAt).toISOString()}`
    await steps.set(`nonce:${nonceId}`, message, nonceMs)
    const answer = create(issueNonce.output, {
      action: 'auth.login',
      challengeId: 'login',
      nonceId,
      nonce,
      origin,
      issuedAt: BigInt(issuedAt),
      expiresAt: BigInt(expiresAt),
      message,
    })
    return toBinary(issueNonce.output, answer)
  },
  [pathOf(verifySignIn)]: async (bytes, _headers, answerHeaders) => {
    const { nonceId, publicKeyHex, signatureHex } = fromBinary(verifySignIn.input, bytes)
    const userId = sameResult ? `usr_${hash('sha256', publicKeyHex, 'base64url')}` : publicKeyHex
    const [message, user] = await Promise.all([
      steps.take(`nonce:${nonceId}`),
      sameResult ? steps.get(`user:${userId}`) : undefined,
    ])
    if (typeof message !== 'string') throw new Error('there is no such nonce')
    const rawKey = Buffer.from(publicKeyHex, 'hex')
    const key = createPublicKey({ key: rawKey, format: 'raw-public', asymmetricKeyType: 'ed25519' })
    if (!verify(null, Buffer.from(message), key, Buffer.from(signatureHex, 'hex'))) throw new Error('not signed')
    const token = randomBytes(32).toString('base64url')
    const id = hash('sha256', token, 'base64url')
    const createdAt = Date.now()
    const expiresAt = createdAt + sessionMs
    // Without an address, the key stands for what would be derived from it.
    const address = sameResult ? nimiq.deriveAddress(rawKey) : publicKeyHex
    const session = { id, userId, adapterId: 'ed25519', publicKeyHex, address, createdAt, expiresAt }
    const newUser = sameResult && typeof user !== 'string'
    await Promise.all([
      steps.set(`session:${id}`, JSON.stringify(session), sessionMs),
      sameResult ? steps.addMember(`sessions:${userId}`, id, expiresAt) : undefined,
      newUser ? steps.set(`user:${userId}`, JSON.stringify({ id: userId, createdAt }), sessionMs) : undefined,
    ])
    if (sameResult) {
      answerHeaders['set-auth-token'] = token
      answerHeaders['set-cookie'] =
        `countersign_session=${token}; Max-Age=${sessionMs / 1000}; Path=/; HttpOnly; SameSite=Lax`
    }
    const answer = create(verifySignIn.output, {
      ok: true,
      token,
      session: { ...session, createdAt: BigInt(createdAt), expiresAt: BigInt(expiresAt), current: true },
    })
    return toBinary(verifySignIn.output, answer)
  },
}

const [store = '', kind] = process.argv.slice(2)
const sameResult = kind === 'same result'
const steps = store === 'sqlite::memory:' ? openMemory() : await openRedis(store)
const server = createServer()
server.on('stream', (stream: ServerHttp2Stream, headers) => {
  const answer = answers[headers[':path'] ?? '']
  const chunks: Buffer[] = []
  stream.on('data', (chunk: Buffer) => chunks.push(chunk))
  stream.on('end', async () => {
    try {
      const body = chunks.length === 1 ? (chunks[0] as Buffer) : Buffer.concat(chunks)
      const answerHeaders: OutgoingHttpHeaders = {}
      const message = await (answer as Answer)(body.subarray(5), headers, answerHeaders)
      answerGrpc(stream, enveloped(message), answerHeaders)
    } catch {
      stream.respond({ ':status': 200, 'grpc-status': '16' }, { endStream: true })
    }
  })
})
listen(server)
process.once('SIGTERM', () => process.exit())
