import type { Random } from '../random.ts'
import type { Application } from './application.ts'
import { Browser, signIn } from './browser.ts'
import type { Secret } from './facts.ts'
import { Party, type Scene } from './party.ts'
import { type Asked, ask } from './service.ts'

/** Uses stolen codes (also those of devices), refresh tokens and addresses. Its own browser has its own session. */
export class Thief extends Party {
  readonly #browser: Browser

  constructor(name: string, scene: Scene) {
    super(name, scene)
    this.#browser = new Browser('the browser of the thief', scene.wallets[2] ?? (scene.wallets[0] as Browser['wallet']))
  }

  protected begin(random: Random): unknown {
    const { browsers, applications, terminals } = this.scene
    // A stolen code of a device is tried at once, and again and again.
    const terminal = terminals.find(({ shown }) => shown?.secret !== undefined)
    if (terminal?.shown !== undefined && random.permille(700)) return terminal.poll(random, this, terminal.shown)
    if (!random.permille(300)) return
    const choice = random.below(100)
    if (choice < 10) return signIn(this, this.#browser, random)
    const application = random.pick(applications)
    if (choice < 45) {
      const { opened } = random.pick(browsers)
      const stolen = opened.filter(({ address }) => /\/(authorize|interaction)\/[\w-]+/.test(address))
      return stolen.length === 0 ? undefined : this.#open(random, random.pick(stolen).address)
    }
    if (choice < 70) {
      const { received } = application
      return received.length === 0 ? undefined : this.#redeem(random, application, random.pick(received).code)
    }
    const refreshes = application.connections.flatMap((each) => each.refreshes)
    if (refreshes.length === 0) return
    const refresh = random.pick(refreshes)
    const other = random.pick(applications)
    const fields = { grant_type: 'refresh_token', refresh_token: refresh.text }
    if (other !== application) return this.#fail(random, 'refreshes for another application', other.tokens(fields))
    // The secret of a confidential one is not stolen.
    if (application.kind.secret === undefined && random.permille(150)) this.#refresh(random, application, refresh)
  }

  /** The browser that began a request is the only one in which it goes on. */
  #open(random: Random, address: string): void {
    const words = `opens the ${address.includes('/authorize/') ? 'resumption' : 'interaction'} of another browser`
    this.do(
      random,
      words,
      (running) => ask(running, { address, headers: this.#browser.headers() }),
      (outcome) => {
        if (outcome.kind !== 'answered') return
        const { status, json, cookies } = outcome.value
        this.#browser.keep(cookies)
        const isRefused = status >= 400 && json.kind !== 'consent'
        this.scene.facts.require(isRefused, `${this.name} ${words}, and is answered ${status} ${json.kind ?? ''}`)
      },
    )
  }

  #redeem(random: Random, application: Application, code: Secret): void {
    const { redirectUri = '' } = application.kind
    const fields = { grant_type: 'authorization_code', code: code.text, redirect_uri: redirectUri }
    this.#fail(random, 'redeems a code', application.tokens({ ...fields, code_verifier: 'x'.repeat(43) }))
  }

  #fail(random: Random, words: string, asked: Asked): void {
    this.do(
      random,
      words,
      (running) => ask(running, asked),
      (outcome) => {
        const isRefused = outcome.kind !== 'answered' || outcome.value.status !== 200
        this.scene.facts.require(isRefused, `${this.name} ${words}, and gets tokens`)
      },
    )
  }

  #refresh(random: Random, application: Application, refresh: Secret): void {
    const { facts } = this.scene
    const words = `refreshes as ${application.clientId}`
    let use: ReturnType<typeof facts.use> | undefined
    this.do(
      random,
      words,
      (running) => {
        use = facts.use(refresh, `${this.name} ${words}`)
        return ask(running, application.tokens({ grant_type: 'refresh_token', refresh_token: refresh.text }))
      },
      (outcome) => use?.done(outcome.kind === 'answered' ? outcome.value : undefined),
    )
  }
}
