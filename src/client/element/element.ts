import { type CountersignClient, createCountersignClient } from '../client.ts'
import { CountersignClientError } from '../errors.ts'
import { isTerminal } from '../order-watch.ts'
import { isHidden, onWake } from '../page.ts'
import type { FinalizedOrder, OrderStatus, StartedOrder } from '../types.ts'
import { Countdown } from './countdown.ts'
import { englishTexts, errorText, type SignInTexts } from './texts.ts'
import { SignInView, type ViewMode } from './view.ts'

export type { SignInTexts } from './texts.ts'

/** Events of the element, by name: each is a `CustomEvent` with this detail, and bubbles. */
export interface CountersignSignInEvents {
  /** The order has a new status. */
  'countersign:status': { readonly orderId: string; readonly status: OrderStatus }
  /** An order of kind login has yielded a session. Its token is stored, unless `no-token-storage` is set. */
  'countersign:signed-in': Extract<FinalizedOrder, { readonly kind: 'login' }>
  /** An order of kind sign has yielded a proof. */
  'countersign:signed': Extract<FinalizedOrder, { readonly kind: 'sign' }>
  /** A call failed. The element offers a new code. */
  'countersign:error': { readonly error: CountersignClientError }
}

/** Number of expired codes that are replaced without user input, so that a forgotten page comes to rest. */
const maxRenewals = 5

/** Without a DOM the module still loads, for servers that render pages. */
const Base = (globalThis.HTMLElement ?? class {}) as typeof HTMLElement

/**
 * `<countersign-sign-in>`: signs in on a desktop, or requests a signature, with a wallet on a phone. Shows the QR code, the
 * confirmation code, the status and the time left.
 *
 * Attributes: `base-url` (default: the page's own origin), `kind` (login, the default, or sign), `adapter-id`, `return-to`,
 * `display-title`, `display-summary`, `payload-hash`, `token-storage-key`, `no-token-storage`. A change starts a new order.
 * Events: {@link CountersignSignInEvents}. The page decides where the user goes next.
 *
 * The only token in the DOM is the claim token, in the QR code.
 */
export class CountersignSignIn extends Base {
  static readonly observedAttributes: readonly string[] = [
    'base-url',
    'kind',
    'adapter-id',
    'return-to',
    'display-title',
    'display-summary',
    'payload-hash',
    'token-storage-key',
    'no-token-storage',
  ]

  #given: CountersignClient | undefined
  /** Client made from the attributes. */
  #made: CountersignClient | undefined
  #texts: SignInTexts = englishTexts
  #view: SignInView | undefined
  #stop: AbortController | undefined
  #running: { readonly order: StartedOrder; readonly client: CountersignClient } | undefined
  #renewals = 0
  #scheduled = false

  /** Client to use instead of one made from the attributes. Setting it starts a new order. */
  set client(client: CountersignClient | undefined) {
    this.#given = client
    this.#schedule()
  }

  get client(): CountersignClient | undefined {
    return this.#given
  }

  /** Texts of the element. Those that are left out stay English. */
  set texts(texts: Partial<SignInTexts>) {
    this.#texts = { ...englishTexts, ...texts }
    this.#view?.setTexts(this.#texts)
  }

  get texts(): SignInTexts {
    return this.#texts
  }

  connectedCallback(): void {
    for (const name of ['client', 'texts'] as const) this.#adopt(name)
    this.#view ??= new SignInView(this, this.#texts, {
      renew: () => this.restart(),
      cancel: () => void this.cancel(),
    })
    this.#schedule()
  }

  disconnectedCallback(): void {
    this.#end()
  }

  attributeChangedCallback(_name: string, before: string | null, after: string | null): void {
    if (before === after) return
    this.#made = undefined
    this.#schedule()
  }

  /** Cancels the current order, if there is one, and starts another. */
  restart(): void {
    this.#renewals = 0
    this.#begin()
  }

  /** Cancels the current order, if there is one. */
  async cancel(): Promise<void> {
    if (this.#running === undefined) return
    const { order, client } = this.#running
    try {
      await client.cancelOrder(order)
    } catch (thrown) {
      this.#fail(thrown)
    }
  }

  /** Starts an order once the current task is done, so that several attributes count as one change. */
  #schedule(): void {
    if (this.#scheduled) return
    this.#scheduled = true
    queueMicrotask(() => {
      this.#scheduled = false
      if (this.isConnected) this.restart()
    })
  }

  #begin(): void {
    this.#end()
    const stop = new AbortController()
    this.#stop = stop
    this.#show('starting', this.#texts.starting)
    if (!isHidden()) {
      void this.#run(stop.signal)
      return
    }
    // A page that was opened in the background: its order would expire before anyone sees it.
    const stopListening = onWake(() => {
      if (isHidden()) return
      stopListening()
      void this.#run(stop.signal)
    })
    stop.signal.addEventListener('abort', stopListening)
  }

  /** Leaves the current order, and cancels it if that is possible: nobody should approve for a page that is gone. */
  #end(): void {
    this.#stop?.abort()
    this.#stop = undefined
    const running = this.#running
    this.#running = undefined
    running?.client.cancelOrder(running.order).catch(ignore)
  }

  async #run(signal: AbortSignal): Promise<void> {
    const countdown = new Countdown((seconds) => this.#view?.showSecondsLeft(seconds))
    countdown.stop()
    try {
      const client = this.#client()
      const order = await client.startOrder({ ...this.#order(), signal })
      this.#running = { order, client }
      this.#view?.setOrder(order)
      this.#show('scan', this.#texts.created)
      let status: OrderStatus = 'created'
      const onConnection = (connected: boolean): void => {
        if (!signal.aborted) this.#view?.say(connected ? this.#texts[status] : this.#texts.reconnecting)
      }
      for await (const event of client.watchOrder(order, { signal, onConnection })) {
        status = event.status
        this.#tell('countersign:status', { orderId: order.orderId, status })
        if (signal.aborted) return
        if (status === 'approved' || isTerminal(status)) {
          this.#running = undefined
          countdown.stop()
        } else countdown.start(order.expiresAt - event.at)
        if (status === 'approved') return await this.#finalize(client, order, signal)
        this.#advance(status)
      }
    } catch (thrown) {
      if (!signal.aborted) this.#fail(thrown)
    } finally {
      countdown.stop()
    }
  }

  async #finalize(client: CountersignClient, order: StartedOrder, signal: AbortSignal): Promise<void> {
    this.#show('done', this.#texts.approved)
    const autoPersistToken = this.hasAttribute('no-token-storage') ? false : undefined
    const finalized = await client.finalizeOrder(order, { signal, autoPersistToken })
    this.#show('done', this.#texts.finalized)
    this.#tell('countersign:status', { orderId: order.orderId, status: finalized.status })
    if (finalized.kind === 'login') this.#tell('countersign:signed-in', finalized)
    else this.#tell('countersign:signed', finalized)
  }

  #advance(status: OrderStatus): void {
    if (status === 'expired' && !isHidden() && this.#renewals < maxRenewals) {
      this.#renewals++
      this.#begin()
      return
    }
    this.#show(isTerminal(status) ? 'again' : status === 'created' ? 'scan' : 'answer', this.#texts[status])
  }

  #fail(thrown: unknown): void {
    const error =
      thrown instanceof CountersignClientError
        ? thrown
        : new CountersignClientError('INVALID_REQUEST', String(thrown), { cause: thrown })
    this.#end()
    this.#show('again', errorText(error, this.#texts))
    this.#tell('countersign:error', { error })
  }

  #show(mode: ViewMode, text: string): void {
    this.#view?.show(mode, text)
  }

  #tell<Name extends keyof CountersignSignInEvents>(name: Name, detail: CountersignSignInEvents[Name]): void {
    this.dispatchEvent(new CustomEvent(name, { detail, bubbles: true, composed: true }))
  }

  #client(): CountersignClient {
    if (this.#given !== undefined) return this.#given
    this.#made ??= createCountersignClient({
      baseUrl: this.getAttribute('base-url') ?? '',
      tokenStorageKey: this.getAttribute('token-storage-key') ?? undefined,
    })
    return this.#made
  }

  #order(): Parameters<CountersignClient['startOrder']>[0] {
    const kind = this.getAttribute('kind') ?? 'login'
    if (kind !== 'login' && kind !== 'sign') throw new TypeError(`kind must be login or sign, not ${kind}`)
    const texts = {
      adapterId: this.getAttribute('adapter-id'),
      returnTo: this.getAttribute('return-to'),
      displayTitle: this.getAttribute('display-title'),
      displaySummary: this.getAttribute('display-summary'),
      payloadHash: this.getAttribute('payload-hash'),
    }
    const given = Object.entries(texts).filter(([, text]) => text !== null)
    return { kind, ...(Object.fromEntries(given) as Record<string, string>) }
  }

  /** Moves a property that was set before the element was defined to the class's setter, which it would hide. */
  #adopt(name: 'client' | 'texts'): void {
    if (!Object.hasOwn(this, name)) return
    const value = this[name]
    Reflect.deleteProperty(this, name)
    Reflect.set(this, name, value, this)
  }
}

function ignore(): void {}

type EventMap = { [Name in keyof CountersignSignInEvents]: CustomEvent<CountersignSignInEvents[Name]> }

declare global {
  interface HTMLElementTagNameMap {
    'countersign-sign-in': CountersignSignIn
  }
  interface HTMLElementEventMap extends EventMap {}
}

if (globalThis.customElements?.get('countersign-sign-in') === undefined) {
  globalThis.customElements?.define('countersign-sign-in', CountersignSignIn)
}
