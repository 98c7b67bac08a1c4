import type { Random } from '../random.ts'
import type { Application } from './application.ts'
import { type Browser, signIn } from './browser.ts'
import type { Secret } from './facts.ts'
import { Party, type Scene } from './party.ts'
import { ask } from './service.ts'

const deviceGrant = 'urn:ietf:params:oauth:grant-type:device_code'

/** A code that a terminal shows. */
interface Shown {
  readonly code: string
  readonly userCode: string
  readonly asked: readonly string[]
  readonly since: number
  /** What it is once its user has allowed it, or may have. */
  secret?: Secret
}

/** A terminal: shows a code, and asks for its tokens until a person has typed it. */
export class Terminal extends Party {
  readonly application: Application
  shown: Shown | undefined
  #next = 0

  constructor(name: string, scene: Scene, application: Application) {
    super(name, scene)
    this.application = application
  }

  protected begin(random: Random): unknown {
    const { world } = this.scene
    const { shown } = this
    if (shown === undefined || world.now > shown.since + 1_200_000) return this.#start(random)
    // A person starts again, or the program asks in two places.
    if (world.now < this.#next && !random.permille(100)) return
    return this.poll(random, this, shown)
  }

  #start(random: Random): void {
    const asked = ['openid', ...['profile', 'offline_access'].filter(() => random.permille(500))]
    const request = this.application.posts('device/auth', { scope: asked.join(' ') })
    this.do(
      random,
      'asks for a code',
      (running) => ask(running, request),
      (outcome) => {
        if (outcome.kind !== 'answered' || outcome.value.status !== 200) return
        const { device_code: code, user_code: userCode } = outcome.value.json
        this.shown = { code, userCode, asked, since: this.scene.world.now }
      },
    )
  }

  /** Who has a code asks for its tokens: this terminal, or a thief. */
  poll(random: Random, by: Party, shown: Shown): void {
    const { facts, world } = this.scene
    const fields = { grant_type: deviceGrant, device_code: shown.code }
    const words = `${by.name} asks for the tokens of a terminal`
    let use: ReturnType<typeof facts.use> | undefined
    by.do(
      random,
      'asks for the tokens of a terminal',
      (running) => {
        use = shown.secret && facts.use(shown.secret, words)
        return ask(running, this.application.tokens(fields))
      },
      (outcome) => {
        if (by === this) this.#next = world.now + 5000
        const answer = outcome.kind === 'answered' ? outcome.value : undefined
        if (answer?.status === 200) use ??= shown.secret && facts.use(shown.secret, words)
        use?.done(answer?.json.error === 'invalid_grant' ? { ...answer, json: {} } : answer)
        if (answer === undefined) return
        if (answer.status !== 200) {
          // It has been used, by an answer that was lost, or is over.
          if (by === this && !['authorization_pending', 'slow_down'].includes(answer.json.error)) this.shown = undefined
          return
        }
        const { secret } = shown
        facts.require(secret !== undefined, `${by.name} gets tokens for a code that has not been allowed`)
        if (secret === undefined || by !== this) return
        this.application.connect(answer, { code: secret }, { words: this.name, began: use?.began ?? 0 })
      },
    )
  }

  /** Notes that a user allows the code. */
  allow(secret: Secret): void {
    if (this.shown !== undefined) this.shown.secret = secret
  }
}

/** A person with a terminal's code, at the page for it. */
export class TerminalUser extends Party {
  readonly #browser: Browser
  readonly #terminal: Terminal
  #step: 'type' | 'sign-in' | 'look' | { readonly sessionId: string; readonly scopes: readonly string[] } = 'type'
  #typed = ''

  constructor(name: string, scene: Scene, { browser, terminal }: { browser: Browser; terminal: Terminal }) {
    super(name, scene)
    this.#browser = browser
    this.#terminal = terminal
  }

  protected begin(random: Random): unknown {
    const { shown } = this.#terminal
    if (shown === undefined) return
    if (this.#typed !== shown.userCode) this.#step = 'type'
    const step = this.#step
    if (step === 'type') return this.#type(random, shown.userCode)
    if (step === 'look') return this.#look(random)
    if (step !== 'sign-in') return this.#decide(random, step, shown)
    return signIn(this, this.#browser, random, (isSignedIn) => {
      if (isSignedIn) this.#step = 'look'
    })
  }

  #type(random: Random, code: string): void {
    this.do(
      random,
      'types a code',
      (running) => ask(running, this.#browser.post('/device', { code })),
      (outcome) => {
        if (outcome.kind !== 'answered' || outcome.value.status !== 200) return
        this.#browser.keep(outcome.value.cookies)
        this.#typed = code
        this.#step = 'sign-in'
      },
    )
  }

  #look(random: Random): void {
    this.do(
      random,
      'looks at what a terminal asks for',
      (running) => ask(running, { address: '/device?back=1', headers: this.#browser.headers() }),
      (outcome) => {
        if (outcome.kind !== 'answered') return
        const { kind, sessionId, scopes } = outcome.value.json
        const known = this.#browser.sessions.find(({ session }) => session.id === sessionId)
        const isDirect = kind !== 'consent' || known?.session.orderId === undefined
        this.scene.facts.require(isDirect, `${this.name} is asked by a session that an order made`)
        this.#step = kind === 'consent' ? { sessionId, scopes } : 'type'
      },
    )
  }

  #decide(
    random: Random,
    step: { readonly sessionId: string; readonly scopes: readonly string[] },
    shown: Shown,
  ): void {
    const { facts, world } = this.scene
    const { sessionId, scopes } = step
    const allow = random.permille(900)
    let [answered, done] = [(): void => {}, (): void => {}]
    this.do(
      random,
      `${allow ? 'allows' : 'declines'} what a terminal asks for`,
      (running) => {
        const known = this.#browser.sessions.find(({ session }) => session.id === sessionId)
        answered = facts.asks(known, this.#terminal.application.clientId)
        if (allow && known !== undefined) {
          const { clientId } = this.#terminal.application
          done = facts.consent(known.session, clientId, scopes)
          const holding = {
            session: known.session,
            since: known.since,
            clientId,
            isOffline: scopes.includes('offline_access'),
            began: facts.tick(),
            given: facts.tick(),
          }
          const life = { givenAt: shown.since, lifeMs: 600_000, graceMs: 0 }
          this.#terminal.allow({ kind: 'device code', text: shown.code, holding, ...life, uses: [] })
        }
        const { userCode: code } = shown
        return ask(running, this.#browser.post('/device', { allow, sessionId, scopes, code }))
      },
      () => {
        done()
        answered()
        world.note(`${this.name} has decided`)
        this.#step = 'type'
        this.#typed = ''
      },
    )
  }
}
