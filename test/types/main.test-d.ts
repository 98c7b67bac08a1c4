// The assertion is that it compiles, here and in a project that has the package installed (consumer.test.ts).
import { createServer } from 'node:http'
import {
  type Countersign,
  CountersignError,
  type CountersignOptions,
  createCountersign,
  createLogger,
  type Ed25519Adapter,
  type ErrorReason,
  ed25519Adapter,
  type FetchClient,
  type FetchHandler,
  type Host,
  type HostUser,
  type IssuedSession,
  type Life,
  type Logger,
  type NonceStore,
  type OrderGrant,
  type OrderSession,
  openStore,
  optionsFromEnvironment,
  type Proof,
  type ProvenIdentity,
  type RemoteChecks,
  type RequestContext,
  type RequestHandler,
  type ResolveLogin,
  type ScannedValue,
  type Session,
  type SignatureAdapter,
  type SignatureCurve,
  type SignatureKind,
  type SignatureVerifier,
  type SignInForm,
  type StartWarning,
  type Store,
  StoreOpenError,
  signatureAdapter,
  type VersionedValue,
  type WalletAccount,
  type WalletAdapter,
} from 'countersign'

export async function run(): Promise<void> {
  const options: CountersignOptions = optionsFromEnvironment(process.env)
  const logger: Logger = createLogger(process.stderr, 'info')
  const resolveLogin: ResolveLogin = async ({ adapterId, subject }) =>
    adapterId === 'nimiq' ? { id: `user of ${subject}` } : null
  const service: Countersign = await createCountersign({ ...options, logger, resolveLogin, adapters: ['nimiq', stamp] })
  const port: number = await service.listen()
  const handler: RequestHandler = service.handler
  createServer(handler).listen(port + 1)
  createServer((request, response) => handler(request, response, () => void response.end()))
  createServer(async (_request, response) => void response.end((await service.metrics()) satisfies string))
  const client: FetchClient = { remoteAddress: '192.0.2.1' }
  const fetchHandler: FetchHandler = service.fetch
  const response: Response = await fetchHandler(new Request('http://localhost/healthz'), client)
  // @ts-expect-error: an address is text.
  await service.fetch(new Request(response.url), { remoteAddress: 1 })
  const session: Session | undefined = await service.introspect('token')
  await service.introspect('token').then((found) => found?.groups satisfies readonly string[] | undefined)
  const address: string | undefined = session?.address
  // @ts-expect-error: a session need not be there.
  session.address.at(0)
  // @ts-expect-error: nobody writes to a session.
  if (session) session.userId = address ?? ''
  // @ts-expect-error: an option that does not exist.
  await createCountersign({ trustedOrigin: 'https://app.example' })
  await service.close()
}

export async function storeOfOneself(): Promise<CountersignOptions> {
  const life: Life = { ttlMs: 1000 }
  // @ts-expect-error: a number is no life; it would leave open what 0 means.
  const number: Life = 1000
  try {
    const store: Store = await openStore('sqlite::memory:')
    await store.create('key', 'value', life)
    const found: VersionedValue | undefined = await store.get('key')
    const scanned: AsyncIterable<ScannedValue> | undefined = store.scan?.('key')
    for await (const { key, value } of scanned ?? []) await store.create(value, key, life)
    await store.compareAndSet('key', found?.version ?? 1, 'next', 'forever', { wake: true })
    return { store, secret: String(number) }
  } catch (error) {
    throw error instanceof StoreOpenError ? new Error('see COUNTERSIGN_STORE', { cause: error }) : error
  }
}

/** An adapter that knows wallets by their address only, and asks elsewhere. */
const stamp: WalletAdapter = {
  id: 'stamp',
  displayName: 'Stamp',
  async verify(message: string, { signatureHex, address }: Proof): Promise<ProvenIdentity | undefined> {
    if (address === undefined) throw new CountersignError('INVALID_REQUEST', 'Name the address')
    if (signatureHex.length !== message.length) return undefined
    return { adapterId: 'stamp', subject: address, publicKeyHex: '', address }
  },
  readAddress: (text) => text,
}

/** The same with a form of its own, whose questions to a server are bounded. */
export const formed: WalletAdapter = {
  ...stamp,
  async verify(message: string, proof: Proof, ed25519: SignatureVerifier, remote?: RemoteChecks) {
    const counts: boolean = (await remote?.ask(async () => true)) ?? true
    return counts ? stamp.verify(message, proof, ed25519) : undefined
  },
  signInText: (form: SignInForm, { address, chainId, publicKeyHex }: WalletAccount): string =>
    [form.domain, address ?? publicKeyHex ?? '', chainId ?? '', form.expiresAt.toFixed(), ...form.resources].join('\n'),
  accountId: (address: string, chainId: string): string => `stamp:${chainId}:${address}`,
  async checkAtStart(warn: StartWarning): Promise<void> {
    warn('the server is away')
    warn('the server is away', { cause: 'ECONNREFUSED' })
    // @ts-expect-error: fields are texts.
    warn('the server is away', { error: new Error('away') })
  },
}

export const framed: Ed25519Adapter = ed25519Adapter({
  id: 'framed',
  displayName: 'Framed',
  signedBytes: (message) => new TextEncoder().encode(message),
  deriveAddress: (publicKey) => String(publicKey.length),
  readAddress: (text) => text,
})

const kind: SignatureKind = {
  id: 'kind',
  displayName: 'Kind',
  curve: 'secp256k1-recovered',
  envelope: (text) => new TextEncoder().encode(text),
  address: (publicKey) => String(publicKey.length),
  readAddress: (text) => text,
}
export const ofKind: SignatureAdapter = signatureAdapter(kind)
export const curve: SignatureCurve = ofKind.curve
// @ts-expect-error: the curve is not known.
void signatureAdapter({ ...kind, curve: 'secp256r1' })

/** A host written elsewhere. */
export class OwnHost implements Host {
  async resolveUser({ adapterId, subject }: ProvenIdentity): Promise<HostUser> {
    return { id: `${adapterId}:${subject}` }
  }
  async createSession(
    user: HostUser,
    identity: ProvenIdentity,
    request: RequestContext,
    order?: OrderGrant,
  ): Promise<IssuedSession> {
    const { adapterId, publicKeyHex, address } = identity
    const { ip = '', userAgent } = request
    const orderId = order === undefined ? {} : { orderId: order.orderId }
    const times = { createdAt: 0, expiresAt: 1 }
    const session = { id: '', userId: user.id, adapterId, publicKeyHex, address, ...times, ...orderId, ip, userAgent }
    return { token: '', session, cookies: [] }
  }
  orderSessionId({ orderId }: OrderGrant): string {
    return orderId
  }
  async endOrderSession({ orderId, userId, sessionId }: OrderSession): Promise<boolean> {
    return orderId === sessionId && userId !== ''
  }
  async currentSession(request: RequestContext): Promise<never> {
    const reason: ErrorReason = request.headers.has('cookie') ? 'SESSION_INVALID' : 'SESSION_REQUIRED'
    throw new CountersignError(reason, 'Sign in', { retryAfterMs: 1000, metadata: { origin: request.origin ?? '' } })
  }
  async signOut(): Promise<readonly string[]> {
    return []
  }
  async listSessions(): Promise<Session[]> {
    return []
  }
  async revokeSession(): Promise<boolean> {
    return false
  }
  async introspect(): Promise<undefined> {}
}

export const nonces: NonceStore | undefined = undefined as CountersignOptions['nonceStore']
