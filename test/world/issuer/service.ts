import { EventEmitter } from 'node:events'
import type { OutgoingHttpHeaders } from 'node:http'
import { silentLogger } from '../../../src/base/log.ts'
import { readRequest } from '../../../src/base/request.ts'
import { Keyring } from '../../../src/base/token.ts'
import { Membership } from '../../../src/core/users/people.ts'
import { walletAdapters } from '../../../src/core/wallet/adapters.ts'
import { nativeVerifier } from '../../../src/core/wallet/native.ts'
import type { Exchange } from '../../../src/http/exchange.ts'
import type { PageFiles } from '../../../src/http/page-files.ts'
import type { Issuer } from '../../../src/oidc/issuer.ts'
import { createIssuer, sessionEnds } from '../../../src/oidc/lazy-issuer.ts'
import { ServiceAddress } from '../../../src/service/address.ts'
import { resolveSettings } from '../../../src/service/config.ts'
import { makeDomain, type ServiceDomain } from '../../../src/service/domain.ts'
import { CountersignError } from '../../../src/shared/errors.ts'
import type { Store } from '../../../src/store/store.ts'
import type { Output, Answer as SentAnswer } from '../../../src/wire/output.ts'
import type { Random } from '../random.ts'
import { ownOrigin } from '../service.ts'
import { MapStore, type Step } from '../store.ts'
import type { Actor, Instance, World } from '../world.ts'
import type { Files } from './files.ts'

/** Lives of sessions in seconds: without a use, and at most. */
export const sessionLife = { idle: 3600, most: 7200 } as const

const settings = resolveSettings({
  appName: 'Example',
  publicUrl: ownOrigin,
  trustedOrigins: [ownOrigin],
  rateLimit: false,
  sessionTtlSeconds: sessionLife.idle,
  sessionAbsoluteTtlSeconds: sessionLife.most,
  oidc: { device: true },
})

/** Pages, of which each is the values that its script reads. */
const pageFiles: PageFiles = {
  page: (_name, values, { status = 200 }) => valuesPage(status, values),
  answerPage: () => valuesPage,
  assets: new Map(),
}

function valuesPage(status: number, values: object) {
  return { status, headers: {}, body: Buffer.from(JSON.stringify(values)) }
}

/** A request to the issuer. */
export interface Asked {
  readonly method?: 'GET' | 'POST'
  /** Path and query. */
  readonly address: string
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string
}

/** An answer of the issuer. */
export interface Answer {
  readonly status: number
  readonly location: string
  readonly cookies: readonly string[]
  /** The JSON of the body; of a page, what it shows. */
  // biome-ignore lint/suspicious/noExplicitAny: each answer has its own.
  readonly json: any
}

/** The parts of a running process. */
export interface Running {
  readonly domain: ServiceDomain
  readonly issuer: Issuer
  readonly sessionEnds: ReturnType<typeof sessionEnds>
  /** Reads the files, and puts them in force. */
  readonly reload: (files: Files) => Promise<void>
}

async function start(store: Store, { people, admitsPeople, clients }: Files): Promise<Running> {
  const membership = new Membership(people, admitsPeople)
  const oidc = { ...settings.oidc, clients }
  const keyring = new Keyring(['a secret of this world, long enough'])
  const domain = makeDomain(settings, store, {
    address: new ServiceAddress(settings, undefined),
    keyring,
    signingKeys: undefined,
    orderStartKeys: () => undefined,
    adapters: walletAdapters(['ed25519']),
    verifier: nativeVerifier,
    membership,
    sessionEnds: sessionEnds(store),
    auditSinks: [],
    observeOrder: undefined,
    tracing: undefined,
    shutdown: new AbortController().signal,
    log: silentLogger,
  })
  const issuer = await createIssuer({
    settings: { ...settings, oidc },
    publicUrl: () => ownOrigin,
    store,
    keyring,
    host: domain.standalone,
    users: domain.users,
    audit: domain.audit,
    pageFiles,
    limiter: undefined,
    live: domain.live.nonces,
    people,
    readWallet: () => undefined,
    log: silentLogger,
  })
  const reload = async (files: Files): Promise<void> => {
    oidc.clients = files.clients
    const apply = await issuer.prepare(files.people)
    membership.replace(files.people)
    apply()
  }
  return { domain, issuer, sessionEnds: sessionEnds(store), reload }
}

/** A store with the issuer's keys, which take long to make: once in a process. */
let prepared: Promise<ReturnType<MapStore['copy']>> | undefined

export async function storeWithKeys(files: Files): Promise<ReturnType<MapStore['copy']>> {
  const prepare = async () => {
    const map = new MapStore(
      () => 0,
      () => {},
    )
    const step =
      (operation: Step['operation']) =>
      async (...args: Step['args']) =>
        map.do({ operation, args })
    const operations = ['get', 'create', 'take', 'compareAndSet', 'addMember', 'removeMember', 'members'] as const
    const store = { now: () => 0, ...Object.fromEntries(operations.map((each) => [each, step(each)])) }
    const { issuer } = await start(store as unknown as Store, files)
    await issuer.close(0)
    return map.copy()
  }
  prepared ??= prepare()
  return await prepared
}

/** A process of the service. After a crash it starts again, which takes steps at the store. */
export class Process implements Actor {
  readonly name: string
  readonly instance: Instance
  running: Running | undefined
  /** Number of the edit whose files it has read, or those of a later one; `Infinity` while it is down. */
  edit = Number.POSITIVE_INFINITY
  readonly #world: World
  readonly #service: Service

  constructor(name: string, world: World, service: Service) {
    this.name = name
    this.#world = world
    this.#service = service
    this.instance = world.addInstance(name, () => {
      this.running = undefined
      this.edit = Number.POSITIVE_INFINITY
    })
    world.add(this)
  }

  act(): void {
    const { files, edit, isStopped } = this.#service
    const { running } = this
    if (isStopped || (running !== undefined && this.edit >= edit)) return
    if (running === undefined) {
      this.edit = edit
      const begin = () => start(this.#world.handle(this.instance), files)
      this.#world.call(this, 'starts', this.instance, begin, (outcome) => {
        if (outcome.kind === 'answered') this.running = outcome.value
        this.#service.onReload()
      })
      return
    }
    const reload = async () => {
      await running.reload(files)
      this.edit = edit
    }
    this.#world.call(this, 'reads its files again', this.instance, reload, () => this.#service.onReload())
  }
}

/** Several processes on one store. */
export class Service {
  readonly processes: readonly Process[]
  /** Whether it waits for a copy to be restored. */
  isStopped = false
  files: Files
  /** Number of edits of the files. */
  edit = 0
  /** Called once a process has read the files of an edit. */
  onReload: () => void = () => {}

  constructor(world: World, size: number, files: Files) {
    this.files = files
    this.processes = Array.from({ length: size }, (_, index) => new Process(`instance ${index + 1}`, world, this))
  }

  /** Number of an edit before which no process has its files any more. */
  get oldestEdit(): number {
    return Math.min(this.edit, ...this.processes.map(({ edit }) => edit))
  }

  /** One of the processes that run. */
  any(random: Random): (Process & { readonly running: Running }) | undefined {
    const up = this.processes.filter((each): each is Process & { running: Running } => each.running !== undefined)
    return up.length === 0 ? undefined : random.pick(up)
  }
}

/**
 * Asks the issuer, in the process. Rejects with STORE_UNAVAILABLE if the store was away, and with what went wrong if the
 * failure is the issuer's own.
 */
export async function ask(
  { issuer }: Running,
  { method = 'GET', address, headers = {}, body = '' }: Asked,
): Promise<Answer> {
  const url = new URL(address, ownOrigin)
  const output = new MemoryOutput()
  const all = { host: url.host, ...headers }
  const known = {
    get: (name: string) => (all as Record<string, string>)[name] ?? null,
    toHeaders: () => new Headers(all),
  }
  const raw = { headers: known, scheme: 'https', authority: url.host, remoteAddress: '192.0.2.1' } as const
  const exchange: Exchange = {
    method,
    path: url.pathname,
    query: url.search.slice(1),
    authority: url.host,
    headers: all,
    body: { decompressed: false, read: async () => Buffer.from(body), drop: () => {} },
    context: readRequest(raw, 0),
    output,
  }
  try {
    const route = issuer.find(url.pathname)
    if (route === undefined) throw new Error(`the issuer has no route for ${url.pathname}`)
    await route.serve(exchange)
  } catch (thrown) {
    if (!(thrown instanceof CountersignError) || thrown.reason === 'STORE_UNAVAILABLE') throw thrown
    if (thrown.reason === 'INTERNAL') throw thrown.cause ?? thrown
    return { status: thrown.httpStatus, location: '', cookies: [], json: { reason: thrown.reason } }
  }
  return output.answer
}

/** Keeps an answer. */
class MemoryOutput implements Output {
  readonly answering: Output['answering'] = Object.assign(new EventEmitter(), { closed: false })
  readonly takesTrailers = false
  begun = false
  #sent: SentAnswer | undefined

  get answer(): Answer {
    if (this.#sent === undefined) throw new Error('the issuer has not answered')
    const { status, headers = {}, body = '' } = this.#sent
    const text = String(body)
    const { location = '', 'set-cookie': cookies = [] } = headers as OutgoingHttpHeaders
    const json = /^[[{]/.test(text) ? JSON.parse(text) : {}
    const shown = json.content ?? json
    return { status, location: String(location), cookies: [cookies].flat().map(String), json: shown }
  }

  setHeaders(): void {}

  send(answer: SentAnswer): void {
    if (!this.begun) this.#sent = answer
    this.begun = true
  }

  begin(): void {
    throw new Error('the issuer streams an answer')
  }

  write(): boolean {
    throw new Error('the issuer streams an answer')
  }

  end(): void {}
}
