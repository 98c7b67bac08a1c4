import type { IssuedSession, Session } from '../../../src/core/users/host.ts'
import { given } from '../../../src/shared/defined-fields.ts'
import type { Random } from '../random.ts'
import { ownOrigin, request } from '../service.ts'
import type { Wallet } from '../wallets.ts'
import type { Application, Begun } from './application.ts'
import type { Holding } from './facts.ts'
import { Party, type Scene } from './party.ts'
import { type Answer, type Asked, ask, type Running } from './service.ts'

const base = '/api/auth/oidc'

/** A session that a browser has, with its bearer token. */
export interface KnownSession extends Holding {
  readonly session: Session
  readonly token: string
  /** What the phone has that approved it, if an order made the session. */
  readonly phone?: PhoneOrder | undefined
}

/** What a phone has of an order. */
interface PhoneOrder {
  readonly orderId: string
  readonly challengeToken: string
}

/** Cookies, which all tabs of a browser share. */
export class Browser {
  readonly name: string
  readonly wallet: Wallet
  /** The session of the cookie. */
  current: KnownSession | undefined
  /** All that it had. */
  readonly sessions: KnownSession[] = []
  /** Addresses that it has opened, newest last. */
  readonly opened: { readonly address: string; readonly flow: Flow }[] = []
  readonly #cookies = new Map<string, string>()

  constructor(name: string, wallet: Wallet) {
    this.name = name
    this.wallet = wallet
  }

  get cookie(): string {
    return [...this.#cookies].map(([name, value]) => `${name}=${value}`).join('; ')
  }

  keep(cookies: readonly string[]): void {
    for (const cookie of cookies) {
      const [, name = '', value = ''] = /^([^=]+)=([^;]*)/.exec(cookie) ?? []
      if (value === '' || /max-age=0\b/i.test(cookie)) this.#cookies.delete(name)
      else this.#cookies.set(name, value)
    }
  }

  /** A request of this browser. */
  headers(others: Readonly<Record<string, string>> = {}): Record<string, string> {
    const { cookie } = this
    return { accept: 'text/html', ...(cookie === '' ? {} : { cookie }), ...others }
  }

  /** Posts JSON as a page of the service's own does. */
  post(address: string, input: object): Asked {
    const headers = this.headers({ 'content-type': 'application/json', origin: ownOrigin })
    return { method: 'POST', address, headers, body: JSON.stringify(input) }
  }

  /** Signs its wallet in, at once: directly, or by an order that a phone with the wallet approves. */
  async signIn({ domain }: Running, byOrder: boolean): Promise<{ issued: IssuedSession; phone?: PhoneOrder }> {
    const from = request(ownOrigin)
    const { signIn, orders } = domain
    if (!byOrder) {
      const { nonceId, message } = await signIn.issueNonce(undefined, {}, from)
      return { issued: await signIn.verify(nonceId, this.wallet.prove(message), from) }
    }
    const { orderId, claimToken, desktopToken } = await orders.start({ kind: 'login' }, from)
    const { challengeToken } = await orders.claim({ orderId, claimToken, claimKey: 'key of a phone' }, from)
    const { message } = await orders.readChallenge({ orderId, challengeToken }, from)
    const proof = this.wallet.prove(message)
    const { returnCode } = await orders.approve({ orderId, challengeToken, proof }, from)
    const finalized = await orders.finalize({ orderId, desktopToken, ...given({ returnCode }) }, from)
    if (finalized.kind !== 'login') throw new TypeError('an order to sign in makes no session')
    return { issued: finalized.issued, phone: { orderId, challengeToken } }
  }
}

/** A request for authorization, in a tab. */
export interface Flow extends Begun {
  readonly application: Application
  /** When the user allowed it, on a page of consent of this request. */
  allowed?: number
}

/** What a tab shows, or is about to open. */
type Shown =
  | { readonly kind: 'opens'; readonly address: string }
  | { readonly kind: 'sign-in'; readonly returnTo: string }
  | { readonly kind: 'consent'; readonly path: string; readonly sessionId: string; readonly scopes: readonly string[] }

interface Place {
  readonly flow: Flow
  readonly shown: Shown
}

/** A tab of a browser: takes its user to an application by way of the issuer. */
export class Tab extends Party {
  readonly browser: Browser
  #at: Place | undefined

  constructor(name: string, scene: Scene, browser: Browser) {
    super(name, scene)
    this.browser = browser
  }

  protected begin(random: Random): unknown {
    const { opened } = this.browser
    // Goes back in its history, or has an address open twice.
    if (opened.length > 0 && random.permille(150)) {
      const { address, flow } = random.pick(opened)
      return this.#open(random, flow, address)
    }
    if (this.#at === undefined) return this.#start(random)
    return this.#goOn(this.#at, random, random.permille(900))
  }

  override finish(random: Random): boolean {
    if (this.#at === undefined) return this.retry(random)
    this.#goOn(this.#at, random, true)
    return true
  }

  #goOn({ flow, shown }: Place, random: Random, allow: boolean): void {
    if (shown.kind === 'opens') this.#open(random, flow, shown.address)
    else if (shown.kind === 'consent') this.#decide(random, flow, shown, allow)
    else this.#signIn(random, flow, shown.returnTo)
  }

  #start(random: Random): void {
    const { applications } = this.scene
    const application = random.pick(applications.filter(({ redirectUri }) => redirectUri !== undefined))
    const number = ++this.scene.count
    const begun = application.authorization(random, number)
    const words = `opens ${application.clientId}, request ${number}`
    const open = (address: string): void => {
      this.#at = { flow: { ...begun, application }, shown: { kind: 'opens', address } }
    }
    if (begun.pushed === undefined) {
      this.scene.world.note(`${this.name} ${words}`)
      open(begun.address)
      return
    }
    const { pushed } = begun
    this.do(
      random,
      `${words}, which it pushes`,
      (running) => ask(running, pushed),
      (outcome) => {
        if (outcome.kind !== 'answered' || outcome.value.status !== 201) return
        const query = new URLSearchParams({
          client_id: application.clientId,
          request_uri: outcome.value.json.request_uri,
        })
        open(`${base}/authorize?${query}`)
      },
    )
  }

  #open(random: Random, flow: Flow, address: string): void {
    const { browser, scene } = this
    const { facts } = scene
    const [, uid] = /\/authorize\/([\w-]+)/.exec(address) ?? []
    let [answered, began] = [(): void => {}, 0]
    let session: KnownSession | undefined
    const words = `opens ${uid === undefined ? address.split('?')[0]?.split('/')[4] : 'authorize again'} of request ${flow.number}`
    this.do(
      random,
      words,
      (running) => {
        began = facts.tick()
        session = browser.current
        answered = facts.asks(session, flow.application.clientId, flow.asked)
        return ask(running, { address, headers: browser.headers() })
      },
      (outcome) => {
        answered()
        if (outcome.kind !== 'answered') return
        const answer = outcome.value
        browser.keep(answer.cookies)
        const isOnward = answer.status === 303 && !answer.location.includes('/sign-in?')
        if (uid !== undefined && isOnward) facts.goesOn(uid, `${this.name} ${words}: an interaction goes on`)
        this.#follow(flow, answer, { began, session, address })
      },
    )
  }

  #follow(
    flow: Flow,
    { status, location, json }: Answer,
    {
      began,
      session,
      address,
    }: { readonly began: number; readonly session: KnownSession | undefined; readonly address: string },
  ): void {
    const { browser, scene } = this
    const { facts, world } = scene
    const { application } = flow
    if (application.redirectUri !== undefined && location.startsWith(application.redirectUri)) {
      this.#at = undefined
      const answered = new URL(location).searchParams
      const code = answered.get('code')
      if (code === null) {
        world.note(`request ${flow.number} ends: ${answered.get('error')}`)
        return
      }
      facts.require(answered.get('state') === flow.state, `${this.name}: a code is for another request`)
      facts.require(session !== undefined, `${this.name}: a code is given without a session`)
      const over = facts.overBefore(session as KnownSession, began, Number.NEGATIVE_INFINITY)
      facts.require(over === undefined, `${this.name}: a code is given although ${over}`)
      const { clientId } = application
      const notListed = facts.notListed({ ...(session as KnownSession), clientId }, began)
      facts.require(notListed === undefined, `${this.name}: a code is given although ${notListed}`)
      if (application.asksEachTime)
        facts.require(flow.allowed !== undefined, `${this.name}: a code is given without a question`)
      if (flow.pushed !== undefined) facts.goesOn(flow.state, `${this.name}: a pushed request gives a code`)
      // What was allowed can have ended before the code was given.
      const since = Math.min(began, flow.allowed ?? began)
      application.receive(code, flow, { ...(session as KnownSession), began: since })
      return
    }
    if (status === 303) {
      const url = new URL(location, ownOrigin)
      const shown: Shown = url.pathname.endsWith('/sign-in')
        ? { kind: 'sign-in', returnTo: url.searchParams.get('returnTo') ?? '' }
        : { kind: 'opens', address: location }
      this.#at = { flow, shown }
      browser.opened.push({ address: shown.kind === 'opens' ? shown.address : shown.returnTo, flow })
      if (browser.opened.length > 6) browser.opened.shift()
      return
    }
    if (json.kind === 'consent') {
      const path = address.split('?')[0] ?? ''
      this.#at = { flow, shown: { kind: 'consent', path, sessionId: json.sessionId, scopes: json.scopes } }
      return
    }
    world.note(`${this.name} sees: ${json.kind ?? json.reason ?? status} ${json.error ?? ''}`)
    this.#at = undefined
  }

  #signIn(random: Random, flow: Flow, returnTo: string): void {
    const next = (): void => {
      this.#at = { flow, shown: { kind: 'opens', address: returnTo } }
    }
    // Another tab has done it.
    if (this.browser.current !== undefined && random.permille(300)) {
      this.scene.world.note(`${this.name} goes back without a sign-in`)
      next()
    } else
      signIn(this, this.browser, random, (isSignedIn) => {
        if (isSignedIn) next()
        else this.#at = undefined
      })
  }

  #decide(random: Random, flow: Flow, shown: Shown & { kind: 'consent' }, allow: boolean): void {
    const { browser, scene } = this
    const { facts } = scene
    const { path, sessionId, scopes } = shown
    let [answered, done] = [(): void => {}, (): void => {}]
    const words = `${allow ? 'allows' : 'declines'} request ${flow.number}`
    this.do(
      random,
      words,
      (running) => {
        const shownTo = browser.sessions.find(({ session }) => session.id === sessionId)
        answered = facts.asks(shownTo, flow.application.clientId)
        facts.require(shownTo !== undefined, `${this.name}: a page of consent is for another browser's session`)
        if (allow && shownTo !== undefined) {
          flow.allowed ??= facts.tick()
          const { clientId } = flow.application
          for (const each of scopes) {
            facts.require(
              flow.asked.includes(each),
              `${this.name}: the page of consent has ${each}, which is not asked for`,
            )
          }
          done = facts.consent(shownTo.session, clientId, scopes)
        }
        return ask(running, browser.post(path, { allow, sessionId, scopes }))
      },
      (outcome) => {
        done()
        answered()
        if (outcome.kind === 'answered' && outcome.value.status === 200) {
          const { redirectTo } = outcome.value.json
          const { application } = flow
          if (application.redirectUri !== undefined && redirectTo.startsWith(application.redirectUri)) {
            // The page has gone on by itself, with the session that it was for.
            const session = browser.sessions.find((each) => each.session.id === sessionId)
            const step = { began: session?.began ?? 0, session, address: path }
            return this.#follow(flow, { status: 303, location: redirectTo, cookies: [], json: {} }, step)
          }
          this.#at = { flow, shown: { kind: 'opens', address: redirectTo } }
          browser.opened.push({ address: redirectTo, flow })
          return
        }
        // The page is loaded again.
        this.#at = { flow, shown: { kind: 'opens', address: path } }
      },
    )
  }
}

/** Signs a browser's wallet in. */
export function signIn(
  party: Party,
  browser: Browser,
  random: Random,
  done: (isSignedIn: boolean) => void = () => {},
): void {
  const { facts } = party.scene
  const byOrder = random.permille(250)
  let began = 0
  party.do(
    random,
    `signs ${browser.wallet.name} in${byOrder ? ' by an order' : ''}`,
    (running) => {
      began = facts.tick()
      return browser.signIn(running, byOrder)
    },
    (outcome) => {
      if (outcome.kind === 'refused') done(false)
      if (outcome.kind !== 'answered') return
      const { issued, phone } = outcome.value
      const { session, token, cookies } = issued
      const given = facts.tick()
      const known: KnownSession = { session, token, phone, isOffline: false, began, given, since: given }
      const over = facts.overBefore(known, began, Number.NEGATIVE_INFINITY)
      facts.require(over === undefined, `${party.name} signs in although ${over}`)
      browser.keep(cookies)
      browser.current = known
      browser.sessions.push(known)
      done(true)
    },
  )
}
