import { hash } from 'node:crypto'
import type { Random } from '../random.ts'
import type { Flow } from './browser.ts'
import { type Facts, type Holding, type Secret, tolerance } from './facts.ts'
import { Party, type Scene } from './party.ts'
import { type Answer, type Asked, ask } from './service.ts'

const base = '/api/auth/oidc'
const dayMs = 86_400_000

/** A request for authorization that an application has begun. */
export interface Begun {
  readonly number: number
  readonly state: string
  /** Where the browser goes. */
  readonly address: string
  /** What the application sends first, if it pushes the request. */
  readonly pushed?: Asked | undefined
  readonly verifier: string
  /** What it asks for, of what it may have: scopes, those of a resource with its address behind a space. */
  readonly asked: readonly string[]
  readonly resource: string | undefined
}

/** A code that has come, with what redeems it. */
interface Received {
  readonly code: Secret
  readonly flow: Flow
}

/** What an application has of one code. */
interface Connection {
  readonly flow: Flow | undefined
  readonly holding: Holding
  readonly resource: string | undefined
  /** Refresh tokens, newest last. */
  readonly refreshes: Secret[]
  access?: { readonly text: string; readonly at: number } | undefined
}

/** A call of an application, and when it began. */
interface Step {
  readonly words: string
  readonly began: number
}

/** What an application is, beside its entry in clients.json. */
export interface ApplicationKind {
  readonly clientId: string
  readonly secret?: string
  readonly redirectUri?: string
  readonly resource?: { readonly address: string; readonly scopes: readonly string[] }
  /** Scopes that it may have. */
  readonly scopes: readonly string[]
  readonly graceMs: number
  readonly rotates: boolean
  /** Whether its users are asked each time. */
  readonly asksEachTime: boolean
  /** Whether it gets all without a question. */
  readonly isFirstParty: boolean
  /** Whether it is for people of the staff. */
  readonly isForStaff: boolean
}

/** An application, with what it has of its users. */
export class Application {
  readonly kind: ApplicationKind
  readonly received: Received[] = []
  readonly connections: Connection[] = []
  /** Connections that were refused, newest last. */
  readonly refused: Connection[] = []
  readonly #scene: () => Scene

  constructor(kind: ApplicationKind, scene: () => Scene) {
    this.kind = kind
    this.#scene = scene
  }

  get clientId(): string {
    return this.kind.clientId
  }

  get redirectUri(): string | undefined {
    return this.kind.redirectUri
  }

  get asksEachTime(): boolean {
    return this.kind.asksEachTime
  }

  /** Begins a request for authorization. */
  authorization(random: Random, number: number): Begun {
    const { clientId, redirectUri = '', resource, secret } = this.kind
    const names = ['profile', 'wallet', 'offline_access'].filter(() => random.permille(500))
    const wanted = resource !== undefined && random.permille(300) ? resource : undefined
    const scopes = ['openid', ...names, ...(wanted?.scopes.filter(() => random.permille(700)) ?? [])]
    const asked = scopes
      .map((each) => (wanted?.scopes.includes(each) ? `${each} ${wanted.address}` : each))
      .filter((each) => each.includes(' ') || this.kind.scopes.includes(each))
    const verifier = `verifier-of-request-${number}`.padEnd(43, '-')
    const state = `request-${number}`
    const isOffline = scopes.includes('offline_access')
    const prompt = isOffline || random.permille(100) ? 'consent' : random.permille(150) ? 'none' : undefined
    const query = new URLSearchParams({
      client_id: clientId,
      redirect_uri: redirectUri,
      response_type: 'code',
      scope: scopes.join(' '),
      state,
      code_challenge: hash('sha256', verifier, 'base64url'),
      code_challenge_method: 'S256',
      ...(prompt === undefined ? {} : { prompt }),
      ...(wanted === undefined ? {} : { resource: wanted.address }),
    })
    const isPushed = secret !== undefined && random.permille(300)
    const pushed = isPushed ? this.posts('par', Object.fromEntries(query)) : undefined
    return { number, state, address: `${base}/authorize?${query}`, pushed, verifier, asked, resource: wanted?.address }
  }

  /** Takes a code. */
  receive(text: string, flow: Flow, { session, since, began }: Pick<Holding, 'session' | 'since' | 'began'>): void {
    const { facts, world } = this.#scene()
    const holding = {
      session,
      since,
      clientId: this.clientId,
      isOffline: flow.asked.includes('offline_access'),
      began,
      given: facts.tick(),
    }
    facts.given++
    const code: Secret = {
      kind: 'code',
      text,
      holding,
      givenAt: world.now,
      lifeMs: 60_000,
      graceMs: 0,
      uses: [],
    }
    this.received.push({ code, flow })
    if (this.received.length > 4) this.received.shift()
  }

  /** What a request for tokens is sent with. */
  tokens(fields: Readonly<Record<string, string>>): Asked {
    return this.posts('token', fields)
  }

  redeem({ code, flow }: Received): Asked {
    const { redirectUri = '' } = this.kind
    const resource: Record<string, string> = flow.resource === undefined ? {} : { resource: flow.resource }
    return this.tokens({
      grant_type: 'authorization_code',
      code: code.text,
      redirect_uri: redirectUri,
      code_verifier: flow.verifier,
      ...resource,
    })
  }

  userinfo(access: string): Asked {
    return { address: `${base}/userinfo`, headers: { authorization: `Bearer ${access}` } }
  }

  /** A request of the application itself, with what it proves itself by. */
  posts(endpoint: string, fields: Readonly<Record<string, string>>): Asked {
    const { clientId, secret } = this.kind
    const credentials = `${encodeURIComponent(clientId)}:${encodeURIComponent(secret ?? '')}`
    const own: Record<string, string> = secret === undefined ? { client_id: clientId } : {}
    return {
      method: 'POST',
      address: `${base}/${endpoint}`,
      headers: {
        'content-type': 'application/x-www-form-urlencoded',
        ...(secret === undefined ? {} : { authorization: `Basic ${Buffer.from(credentials).toString('base64')}` }),
      },
      body: new URLSearchParams({ ...fields, ...own }).toString(),
    }
  }

  /** Keeps the tokens of an answer, which are those that their user allowed. */
  take(answer: Answer, connection: Connection, { words, began }: Step): void {
    const { facts, world } = this.#scene()
    const { access_token: access, refresh_token: refresh, id_token: id, scope = '' } = answer.json
    const { holding, refreshes, resource } = connection
    const { userId } = holding.session
    const { kind } = this
    connection.access = { text: access, at: world.now }
    checkAllowed(facts, { kind, userId, scope, resource, words, began })
    for (const token of [id, ...(resource === undefined ? [] : [access])]) {
      if (token === undefined) continue
      const { sub, aud, exp, iat } = claimsOf(token)
      facts.require(sub === userId, `${words}: a token is for another user`)
      const isMeant = [kind.clientId, resource].includes(aud)
      facts.require(isMeant, `${words}: a token is for another application`)
      const latest = Math.max(exp - iat, exp - world.now / 1000)
      facts.require(latest <= 900 + tolerance / 1000, `${words}: a token lives for more than 15 minutes`)
    }
    if (refresh === undefined || refreshes.at(-1)?.text === refresh) return
    const { graceMs, rotates } = kind
    refreshes.push({
      kind: 'refresh token',
      text: refresh,
      holding: { ...holding, given: facts.tick() },
      givenAt: world.now,
      lifeMs: rotates ? 14 * dayMs : 90 * dayMs,
      graceMs: rotates ? graceMs : Number.POSITIVE_INFINITY,
      uses: [],
    })
    if (refreshes.length > 4) refreshes.shift()
  }

  /** Begins a connection with the tokens of an answer. */
  connect(answer: Answer, { code, flow }: { readonly code: Secret; readonly flow?: Flow }, step: Step): void {
    const connection: Connection = { flow, holding: code.holding, resource: flow?.resource, refreshes: [] }
    this.take(answer, connection, step)
    this.connections.push(connection)
    if (this.connections.length > 4) this.connections.shift()
  }
}

interface Given extends Step {
  readonly kind: ApplicationKind
  readonly userId: string
  readonly scope: string
  readonly resource: string | undefined
}

/** What an application gets is what it may have, and what its user has allowed. */
function checkAllowed(facts: Facts, { kind, userId, scope, resource, words, began }: Given): void {
  const allowed = facts.allowed(userId, kind.clientId, began)
  for (const each of scope.split(' ').filter((name) => name !== '')) {
    const permission = resource === undefined ? each : `${each} ${resource}`
    const isOffered =
      resource === undefined
        ? kind.scopes.includes(each) &&
          (each === 'openid' || facts.filesSince(began).some(({ narrow }) => narrow !== kind.clientId))
        : kind.resource?.address === resource &&
          kind.resource.scopes.includes(each) &&
          facts.filesSince(began).some(({ narrow }) => narrow !== kind.clientId)
    facts.require(isOffered, `${words}: it gets ${permission}, which it may not have`)
    const isGiven = kind.isFirstParty || allowed.has(permission)
    facts.require(isGiven, `${words}: it gets ${permission}, which its user has not allowed`)
  }
}

// biome-ignore lint/suspicious/noExplicitAny: claims of any kind.
function claimsOf(token: string): any {
  return JSON.parse(Buffer.from(token.split('.')[1] ?? '', 'base64url').toString())
}

/** A window or process of an application. Several share what the application has. */
export class Window extends Party {
  readonly application: Application
  /** Connections that were refreshed at the end. */
  readonly #finished = new Set<Connection>()

  constructor(name: string, scene: Scene, application: Application) {
    super(name, scene)
    this.application = application
  }

  protected begin(random: Random): unknown {
    const { received, connections } = this.application
    const fresh = received.find(({ code }) => code.uses.length === 0)
    if (fresh !== undefined) return this.#redeem(random, fresh)
    // The page that takes codes is loaded again.
    if (received.length > 0 && random.permille(40)) return this.#redeem(random, random.pick(received))
    const known = [...connections, ...this.application.refused]
    if (known.length > 0 && this.application.kind.secret !== undefined && random.permille(250))
      return this.#introspect(random, random.pick(known))
    if (connections.length === 0) return
    const connection = random.pick(connections)
    if (random.permille(400)) return this.#use(random, connection)
    const { refreshes } = connection
    const refresh = random.permille(960) ? refreshes.at(-1) : random.pick(refreshes)
    if (refresh !== undefined) return this.refresh(random, connection, refresh)
  }

  override finish(random: Random): boolean {
    if (this.retry(random)) return true
    const { received, connections } = this.application
    const fresh = received.find(({ code }) => code.uses.length === 0)
    if (fresh !== undefined) {
      this.#redeem(random, fresh)
      return true
    }
    // What still counts, counts at the end.
    const connection = connections.find((each) => !this.#finished.has(each))
    const refresh = connection?.refreshes.at(-1)
    if (connection !== undefined) this.#finished.add(connection)
    if (connection !== undefined && refresh !== undefined) this.refresh(random, connection, refresh)
    return connection !== undefined
  }

  #redeem(random: Random, received: Received): void {
    const { application, scene } = this
    const words = `redeems the code of request ${received.flow.number}`
    let use: ReturnType<Facts['use']> | undefined
    this.do(
      random,
      words,
      (running) => {
        use = scene.facts.use(received.code, `${this.name} ${words}`)
        return ask(running, application.redeem(received))
      },
      (outcome) => {
        const answer = outcome.kind === 'answered' ? outcome.value : undefined
        use?.done(answer)
        if (answer?.status === 200)
          application.connect(answer, received, { words: `${this.name} ${words}`, began: use?.began ?? 0 })
        else if (outcome.kind === 'lost' && random.permille(500)) this.later((again) => this.#redeem(again, received))
      },
    )
  }

  refresh(random: Random, connection: Connection, refresh: Secret): void {
    const { application, scene } = this
    const words = `refreshes ${connection.flow === undefined ? '' : `what request ${connection.flow.number} gave`}`
    const resource: Record<string, string> = connection.resource === undefined ? {} : { resource: connection.resource }
    let use: ReturnType<Facts['use']> | undefined
    this.do(
      random,
      words,
      (running) => {
        use = scene.facts.use(refresh, `${this.name} ${words}`)
        const fields = { grant_type: 'refresh_token', refresh_token: refresh.text, ...resource }
        return ask(running, application.tokens(fields))
      },
      (outcome) => {
        const answer = outcome.kind === 'answered' ? outcome.value : undefined
        use?.done(answer)
        if (answer?.status === 200)
          application.take(answer, connection, { words: `${this.name} ${words}`, began: use?.began ?? 0 })
        else if (outcome.kind === 'lost') this.later((again) => this.refresh(again, connection, refresh))
        else if (answer?.json.error === 'invalid_grant') this.#forget(connection)
      },
    )
  }

  #forget(connection: Connection): void {
    const { connections, refused } = this.application
    if (!connections.includes(connection)) return
    connections.splice(connections.indexOf(connection), 1)
    refused.push(connection)
    if (refused.length > 2) refused.shift()
  }

  /** Asks the issuer whether a token counts. */
  #introspect(random: Random, { access, holding, resource, refreshes }: Connection): void {
    const { application, scene } = this
    const { facts, world } = scene
    const refresh = refreshes.at(-1)
    const isRefresh = refresh !== undefined && random.permille(700)
    const token = isRefresh ? refresh.text : resource === undefined ? access?.text : undefined
    if (token === undefined) return
    const words = `asks about ${isRefresh ? 'a refresh' : 'an access'} token`
    const [givenAt, lifeMs] = isRefresh ? [refresh.givenAt, refresh.lifeMs] : [access?.at ?? 0, 900_000]
    let [began, beganAt] = [0, 0]
    this.do(
      random,
      words,
      (running) => {
        ;[began, beganAt] = [facts.tick(), world.now]
        return ask(running, application.posts('introspect', { token }))
      },
      (outcome) => {
        if (outcome.kind !== 'answered' || outcome.value.status !== 200) return
        // Groups are asked about when a token is used.
        const { session } = holding
        const over = facts.endedBefore(holding, began, beganAt) ?? facts.notListed({ session }, began)
        if (outcome.value.json.active)
          return facts.require(over === undefined, `${this.name} ${words}: it counts although ${over}`)
        const isUsed = isRefresh && refresh.uses.length > 0
        const isExplained = isUsed || world.now > givenAt + lifeMs - tolerance || facts.mayBeOver(holding, began)
        facts.require(isExplained, `${this.name} ${words}, which does not count`)
      },
    )
  }

  /** Asks who the user is. */
  #use(random: Random, { access, holding, resource }: Connection): void {
    if (access === undefined || resource !== undefined) return
    const { application, scene } = this
    const { facts, world } = scene
    let [began, beganAt] = [0, 0]
    this.do(
      random,
      'asks for userinfo',
      (running) => {
        ;[began, beganAt] = [facts.tick(), world.now]
        return ask(running, application.userinfo(access.text))
      },
      (outcome) => {
        if (outcome.kind !== 'answered') return
        const { status, json } = outcome.value
        const words = `${this.name} asks for userinfo`
        if (status === 200) {
          const over = facts.overBefore(holding, began, beganAt)
          facts.require(over === undefined, `${words}: an access token counts although ${over}`)
          facts.require(beganAt < access.at + 900_000 + tolerance, `${words}: an access token counts for too long`)
          return facts.require(json.sub === holding.session.userId, `${words}: it is of another user`)
        }
        const isExplained = world.now > access.at + 900_000 - tolerance || facts.mayBeOver(holding, began)
        facts.require(isExplained, `${words}: an access token is refused: ${status} ${JSON.stringify(json)}`)
      },
    )
  }
}
