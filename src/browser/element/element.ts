import type { FinalizedOrder, OrderStatus, StartedOrder, StartOrderOptions } from '../../shared/orders.ts'
import { isLoopbackHost } from '../../shared/origin.ts'
import { englishTexts } from '../../shared/texts/english-element.ts'
import type { ClientCalls } from '../client/calls.ts'
import { adoptProperties, Base, define, dispatch, watchProperties } from '../client/custom-element.ts'
import type { DesktopCalls } from '../client/desktop-orders.ts'
import { type ClientErrorCode, CountersignClientError, failureOf, isPassing } from '../client/errors.ts'
import { isTerminal } from '../client/order-watch.ts'
import { isHidden, isPhone, loadOnDemand, untilShown } from '../client/page.ts'
import { defaultBasePath } from '../client/rest-api.ts'
import { readSentSignIn } from '../client/sent-sign-in.ts'
import type { SignInCalls } from '../client/sign-in.ts'
import { loadTranslation } from '../client/translation.ts'
import type { AppAddress, FoundWallet } from '../wallets/found.ts'
import type { HubOptions } from '../wallets/hub.ts'
import { Countdown } from './countdown.ts'
import { desktopOf, type ElementService } from './desktop.ts'
import type { DeviceSignIn, DeviceSignInResult } from './device-sign-in.ts'
import { errorText, type SignInTexts, type TextName } from './texts.ts'
import { SignInView, type ViewMode } from './view.ts'

export type { DeviceSignInResult } from './device-sign-in.ts'
export type { DeviceTexts, SignInTexts } from './texts.ts'

/** Events of the element, by name: each is a `CustomEvent` with this detail, and bubbles. */
export interface CountersignSignInEvents {
  /** The order has a new status. */
  'countersign:status': { readonly orderId: string; readonly status: OrderStatus }
  /**
   * A user has signed in: by an order of kind login, or with a wallet on this device. The token is stored with
   * `token-storage` or `token-storage-key` only.
   */
  'countersign:signed-in': Extract<FinalizedOrder, { readonly kind: 'login' }> | DeviceSignInResult
  /** An order of kind sign has yielded a proof. */
  'countersign:signed': Extract<FinalizedOrder, { readonly kind: 'sign' }>
  /** A call or a wallet failed. The element says so, and offers to try again. */
  'countersign:error': { readonly error: CountersignClientError }
}

/**
 * A function that has the page's own backend start an order, and resolves with it as the service answered it. The
 * backend passes `computerKey` on, if there is one, so that the computer can become known.
 */
export type StartOrderOnBackend = (request: {
  readonly computerKey?: string
  /** Aborts if the element does not need the order any more. */
  readonly signal: AbortSignal
}) => Promise<StartedOrder>

/**
 * The calls that the element makes: any client has them. Without those for a direct sign-in, it offers none, and
 * without `service`, no demo wallet.
 */
export interface SignInClient
  extends Pick<DesktopCalls, 'computerKey' | 'startOrder' | 'watchOrder' | 'finalizeOrder' | 'cancelOrder'>,
    Partial<SignInCalls>,
    Partial<Pick<ClientCalls, 'service'>> {}

/** An order that the element has started. */
interface RunningOrder {
  readonly order: StartedOrder
  readonly client: SignInClient
  readonly signal: AbortSignal
  status: OrderStatus
  /** Whether a return code is being checked. */
  isChecking: boolean
}

/** Number of expired codes that are replaced without user input, so that a forgotten page comes to rest. */
const maxRenewals = 5

/** Attributes that are options of the order under their names in camel case. */
const orderAttributes = [
  'adapter-id',
  'return-to',
  'display-title',
  'display-summary',
  'payload',
  'payload-hash',
  'expected-address',
  'expected-public-key-hex',
] as const

/**
 * `<countersign-sign-in>`: signs in with a wallet on a phone or on this device, or requests a signature from a phone.
 * Shows the QR code, the confirmation code, the status and the time left, and asks for the return code if the service
 * uses them. A button shows the wallets on this device; on phones they come first, and a button shows the QR code.
 *
 * Attributes: `base-url` (default: the page's own origin), `base-path` (of the REST endpoints, default /api/auth),
 * `endpoint-prefix` (of the direct sign-in under it, default /wallet), `kind` (login, the default, or sign),
 * `adapter-id`, `adapter-ids` (of the wallets on this device, separated by commas; default: all), `cross-device-only`,
 * `wallets-first` (the wallets on this device above the QR code), `return-to`, `display-title`, `display-summary`,
 * `payload`, `payload-hash`, `expected-address`, `expected-public-key-hex`, `token-storage` (also keeps the
 * session token in `localStorage`; without it, the session is in the cookie only), `token-storage-key` (the same, under
 * this key). A change starts a new order. With the property `startOrder`, the page's backend decides what the order is:
 * then wallets on this device are offered only if `kind` is set to login. Events: {@link CountersignSignInEvents}. The
 * page decides where the user goes next.
 *
 * Parts to style: `card` (edge, padding), `stage`, `qr`, `picture`, `code-box`, `code`, `return-code-digit`,
 * `countdown`, `status`, `account`, `steps`, `actions`, `copy`, `submit`, `cancel`, `renew`, `other-device`, `device`,
 * `this-device`; of the list of wallets `wallet`, `wallet-icon`, `wallet-name`, `wallet-about`, `app`.
 *
 * Custom properties: `--countersign-color` and `--countersign-background` (text, and what it is on; default: the
 * page's), `--countersign-border` (lines, and edges of buttons and boxes; a shade of the text), `--countersign-accent`
 * and `--countersign-on-accent` (main button, tick, focus; text on that button; text and background),
 * `--countersign-error` (boxes of a wrong code; red), `--countersign-radius` (corners; 10px), `--countersign-qr-size`
 * (side of the QR code; 17rem).
 *
 * The only token in the DOM is the claim token, in the QR code.
 */
export class CountersignSignIn extends Base {
  static readonly observedAttributes: readonly string[] = [
    'base-url',
    'base-path',
    'endpoint-prefix',
    'kind',
    'adapter-ids',
    'cross-device-only',
    'wallets-first',
    ...orderAttributes,
    'token-storage',
    'token-storage-key',
  ]

  static {
    const atFirst = {
      client: undefined,
      startOrder: undefined,
      hub: undefined,
      extraWallets: [],
      appAddress: undefined,
      walletHelp: true,
    }
    watchProperties(CountersignSignIn, atFirst, (element) => element.#schedule())
  }

  /** Client to use instead of one made from the attributes. Setting it starts a new order. */
  declare client: SignInClient | undefined
  /** Function that starts the order in place of the element. Setting it starts a new order. */
  declare startOrder: StartOrderOnBackend | undefined
  /** The Nimiq Hub, as `findWallets` takes it. Default: it is not listed. Setting it starts a new order. */
  declare hub: HubOptions | undefined
  /** Wallets that the page offers itself, as `findWallets` takes them. Setting them starts a new order. */
  declare extraWallets: readonly FoundWallet[]
  /**
   * What wallet apps open, on phones: default, on a page at https, its own address without the fragment. Others get
   * none, because no wallet opens them. Setting it starts a new order.
   */
  declare appAddress: AppAddress | undefined
  /** Whether the list of wallets leads people who have none to three that they can get. Default: yes. */
  declare walletHelp: boolean

  /** Client made from the attributes. */
  #made: SignInClient | undefined
  #texts: SignInTexts = englishTexts
  /** Whether the page set the texts. */
  #hasOwnTexts = false
  #view: SignInView | undefined
  /** Text that the view shows while the connection holds. */
  #text = ''
  #stop: AbortController | undefined
  #running: RunningOrder | undefined
  #renewals = 0
  #scheduled = false
  /** The wallets on this device, from the user's click on. */
  #device: { signIn?: DeviceSignIn } | undefined
  /** Whether these wallets come before the QR code. */
  #isDeviceFirst = false

  /**
   * Texts of the element. Those that are left out stay English. Default: those of the page's language, or of the
   * element's place in it (`lang`; else the browser's first language), if it is a built-in one.
   */
  set texts(texts: Partial<SignInTexts>) {
    this.#hasOwnTexts = true
    this.#speak(texts)
  }

  #speak(texts: Partial<SignInTexts>): void {
    const before = this.#texts
    this.#texts = { ...englishTexts, ...texts }
    this.#view?.setTexts(this.#texts)
    // What stands there in another language.
    const said = (Object.keys(before) as TextName[]).find((name) => before[name] === this.#text)
    if (said !== undefined) this.#say(this.#texts[said])
    this.#device?.signIn?.setTexts(this.#texts)
  }

  get texts(): SignInTexts {
    return this.#texts
  }

  connectedCallback(): void {
    adoptProperties(this)
    void this.#learnLanguage()
    this.#view ??= new SignInView(this, this.#texts, {
      renew: () => {
        this.#renewals = 0
        this.#begin()
      },
      toggleWallets: () => {
        if (this.#device === undefined) void this.#openWallets()
        else this.#closeWallets()
      },
      cancel: () => void this.cancel(),
      submitCode: (returnCode) => this.#running !== undefined && void this.#enter(this.#running, returnCode),
    })
    this.#schedule()
  }

  disconnectedCallback(): void {
    this.#end()
    this.#closeWallets()
  }

  attributeChangedCallback(_name: string, before: string | null, after: string | null): void {
    if (before === after) return
    this.#made = undefined
    this.#schedule()
  }

  /**
   * Starts anew: cancels the current order, if there is one, and starts another; on a phone, shows the wallets that are
   * on it.
   */
  restart(): void {
    this.#renewals = 0
    this.#closeWallets()
    const isOffered = this.#offersWallets()
    const isFirst = isOffered && isPhone()
    this.#isDeviceFirst = isFirst
    const isLocal = this.#isOnThisComputer()
    const isAbove = isOffered && (isFirst || isLocal || this.hasAttribute('wallets-first'))
    this.#view?.offerWallets({ isOffered, isFirst, isAbove, isLocal })
    if (isFirst) {
      this.#end()
      this.#show('offer', '')
    } else this.#begin()
    // Back from a wallet that took the place of the page.
    const isBack = isOffered && this.hub !== undefined && readSentSignIn() !== undefined
    if (this.#isDeviceFirst || isBack) void this.#openWallets()
  }

  /** Cancels the current order, if there is one. */
  async cancel(): Promise<void> {
    if (this.#running === undefined) return
    const { order, client } = this.#running
    this.#say(this.#texts.loading)
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
    void this.#run(stop.signal)
  }

  /**
   * Leaves the current order, and cancels it if that is possible: an approval would be of no use to a page that is
   * gone.
   */
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
    // The order of a page that was opened in the background would expire unseen.
    await untilShown(signal)
    if (signal.aborted) return
    try {
      const client = this.#client()
      const order = await this.#started(client, signal)
      if (signal.aborted) {
        // A backend may start an order although the element has left it.
        client.cancelOrder(order).catch(ignore)
        return
      }
      const running: RunningOrder = { order, client, signal, status: 'created', isChecking: false }
      this.#running = running
      this.#view?.setOrder(order)
      this.#advance('created')
      const onConnection = (connected: boolean): void => {
        if (!signal.aborted) this.#view?.say(connected ? this.#text : this.#texts.reconnecting)
      }
      for await (const event of client.watchOrder(order, { signal, onConnection })) {
        const { status, at, returnCodeRequired, finishBy } = event
        const wasApproved = running.status === 'approved'
        // Told by the call that finalizes.
        if (wasApproved && status === 'finalized') return
        running.status = status
        dispatch(this, 'countersign:status', { orderId: order.orderId, status })
        if (signal.aborted) return
        if (status === 'approved' && returnCodeRequired) {
          this.#show('enter-code', this.#texts.returnCode)
          countdown.stop()
          if (finishBy !== undefined) countdown.start(finishBy - at)
          continue
        }
        // The answer to the code says more: it may have been the third wrong one.
        if (running.isChecking) return
        if (status === 'approved' || isTerminal(status)) {
          this.#running = undefined
          countdown.stop()
        } else countdown.start(order.expiresAt - at)
        if (status === 'approved') return await this.#finalize(running)
        if (wasApproved) this.#show(modeAfter(status), this.#texts[afterApproval[status] ?? status])
        else this.#advance(status)
      }
    } catch (thrown) {
      if (!signal.aborted) this.#fail(thrown)
    } finally {
      countdown.stop()
    }
  }

  async #started(client: SignInClient, signal: AbortSignal): Promise<StartedOrder> {
    if (this.startOrder === undefined) return await client.startOrder({ ...this.#order(), signal })
    const computerKey = await client.computerKey()
    return await this.startOrder({ ...(computerKey === undefined ? {} : { computerKey }), signal })
  }

  /** Finalizes with a return code. Asks again after a wrong one. */
  async #enter(running: RunningOrder, returnCode: string): Promise<void> {
    running.isChecking = true
    this.#view?.setChecking(true)
    this.#view?.sayOfCode('')
    this.#say(this.#texts.checking)
    try {
      await this.#finalize(running, returnCode)
    } catch (thrown) {
      if (!running.signal.aborted) this.#refused(running, thrown)
    } finally {
      running.isChecking = false
    }
  }

  #refused(running: RunningOrder, thrown: unknown): void {
    const error = failureOf(thrown)
    const { code, triesLeft } = error
    if (code === 'RETURN_CODE_WRONG') {
      if (triesLeft !== 0) {
        const { lastTry, wrongCode, returnCode } = this.#texts
        this.#view?.askForCode(triesLeft === 1 ? lastTry : wrongCode.replace('{tries}', String(triesLeft)))
        this.#say(returnCode)
        return
      }
      if (running.status !== 'rejected') {
        dispatch(this, 'countersign:status', { orderId: running.order.orderId, status: 'rejected' })
      }
      this.#running = undefined
      this.#end()
      this.#show('again', this.#texts.codesUsedUp)
    } else if (isPassing(error)) {
      // The digits stay in the field.
      this.#view?.setChecking(false)
      this.#view?.sayOfCode(errorText(error, this.#texts))
      this.#say(this.#texts.returnCode)
    } else this.#fail(error)
  }

  async #finalize({ order, client, signal }: RunningOrder, returnCode?: string): Promise<void> {
    if (returnCode === undefined) this.#show('finishing', this.#texts.approved)
    const autoPersistToken = this.#autoPersistToken()
    const finalized = await client.finalizeOrder(order, { signal, autoPersistToken, returnCode })
    this.#running = undefined
    this.#finish(finalized)
    dispatch(this, 'countersign:status', { orderId: order.orderId, status: finalized.status })
    if (finalized.kind === 'login') dispatch(this, 'countersign:signed-in', finalized)
    if (finalized.kind === 'sign') dispatch(this, 'countersign:signed', finalized)
  }

  #advance(status: OrderStatus): void {
    if (status === 'expired' && !isHidden() && this.#renewals < maxRenewals) {
      this.#renewals++
      this.#begin()
      return
    }
    if (status === 'created') {
      const host = this.#isDeviceFirst ? undefined : this.#view?.localHost
      // That the digits are others is said aloud, too.
      const name = this.#renewals > 0 ? 'renewed' : this.#isDeviceFirst ? 'scanElsewhere' : status
      const text = this.#texts[name]
      this.#show('scan', host === undefined ? text : this.#texts.localOnly.replace('{host}', host))
      return
    }
    const text = status === 'waiting_user' && !this.#running?.order.confirmationCode ? 'answer' : status
    this.#show(isTerminal(status) ? modeAfter(status) : 'answer', this.#texts[text])
  }

  #fail(thrown: unknown): void {
    const error = failureOf(thrown)
    this.#end()
    if (error.code === 'ORIGIN_NOT_TRUSTED' || error.code === 'UNEXPECTED_ANSWER') this.#noteForDeveloper(error)
    this.#show(modeAfter(error.code), errorText(error, this.#texts))
    dispatch(this, 'countersign:error', { error })
  }

  /** Names the setting behind an error on a developer's own computer, unless the page has a client of its own. */
  #noteForDeveloper({ message }: CountersignClientError): void {
    if (this.client !== undefined || !isLoopbackHost(location.hostname)) return
    const { baseUrl, basePath = defaultBasePath } = this.#service()
    const address = new URL(baseUrl, location.href).origin + basePath
    // biome-ignore lint/suspicious/noConsole: the page shows users their own texts only.
    console.warn(`<countersign-sign-in> looks for the service at ${address}: ${message}. Check base-url and base-path.`)
  }

  #show(mode: ViewMode, text: string): void {
    this.#text = text
    this.#view?.show(mode, text)
  }

  #say(text: string): void {
    this.#text = text
    this.#view?.say(text)
  }

  /** Whether a sign-in on this device would be what the page wants, and its client can make one. */
  #offersWallets(): boolean {
    const kind = this.getAttribute('kind') ?? (this.startOrder === undefined ? 'login' : undefined)
    const canSignIn = this.client === undefined || hasSignIn(this.client)
    return kind === 'login' && canSignIn && !this.hasAttribute('cross-device-only')
  }

  /** Loads the texts of the page's language. If that fails, the element stays English. */
  async #learnLanguage(): Promise<void> {
    if (this.#hasOwnTexts) return
    const texts = await loadTranslation(this.closest('[lang]')?.getAttribute('lang') || navigator.language)
    if (texts !== undefined && !this.#hasOwnTexts) this.#speak(texts)
  }

  /** Shows the wallets on this device. */
  async #openWallets(): Promise<void> {
    const view = this.#view
    if (view === undefined) return
    const opened: { signIn?: DeviceSignIn } = {}
    this.#device = opened
    const place = view.openWallets()
    view.sayOfWallet(this.#texts.loading)
    try {
      const { DeviceSignIn, offeredDemoWallet, englishDeviceTexts } = await loadOnDemand(
        () => import('./device-sign-in.ts'),
      ).catch((cause) => {
        throw new CountersignClientError('NETWORK', 'The list of wallets could not be loaded', { cause })
      })
      const listed = this.getAttribute('adapter-id') ?? this.getAttribute('adapter-ids')
      const adapterIds = listed?.split(',').map((id) => id.trim())
      const name = this.#texts.wallets?.demoWallet ?? englishDeviceTexts.demoWallet
      const service = this.client === undefined ? this.#service() : this.client.service
      // A page that has a demo wallet itself, as the service's own sign-in page, gets no second one.
      const hasDemo = this.extraWallets.some(({ kind }) => kind === 'demo')
      const demo = service === undefined || hasDemo ? undefined : await offeredDemoWallet(service, { adapterIds, name })
      if (this.#device !== opened) return
      opened.signIn = new DeviceSignIn(place, {
        client: this.client !== undefined && hasSignIn(this.client) ? this.client : this.#service(),
        adapterIds,
        hub: this.hub,
        extra: demo === undefined ? this.extraWallets : [...this.extraWallets, demo],
        appAddress: this.appAddress ?? ownAddress(),
        walletHelp: this.walletHelp,
        autoPersistToken: this.#autoPersistToken(),
        returnTo: this.getAttribute('return-to') ?? undefined,
        texts: this.#texts,
        say: (text) => view.sayOfWallet(text),
        onSignedIn: (result) => this.#signedIn(result),
        onError: (error) => dispatch(this, 'countersign:error', { error }),
      })
    } catch (thrown) {
      if (this.#device !== opened) return
      this.#closeWallets(this.#texts.walletsFailed)
      dispatch(this, 'countersign:error', { error: failureOf(thrown) })
    }
  }

  /** Leaves the wallets on this device, and says why. */
  #closeWallets(text = ''): void {
    this.#device?.signIn?.stop()
    this.#device = undefined
    this.#view?.closeWallets(text)
  }

  /** A wallet on this device has signed in: no phone is needed any more. */
  #signedIn(result: DeviceSignInResult): void {
    this.#end()
    this.#finish(result)
    dispatch(this, 'countersign:signed-in', result)
  }

  #finish(result: FinalizedOrder | DeviceSignInResult): void {
    this.#closeWallets()
    this.#show('done', this.#texts[result.kind === 'sign' ? 'signed' : 'finalized'])
    if (result.kind === 'login') this.#view?.showAccount(result.session.address)
    if (result.kind === 'sign') this.#view?.showAccount(result.proofArtifact.address)
  }

  #autoPersistToken(): boolean {
    return this.hasAttribute('token-storage') || this.hasAttribute('token-storage-key')
  }

  /** Whether the service is at an address that no phone can open, as while an application is made. */
  #isOnThisComputer(): boolean {
    const { baseUrl } = this.client === undefined ? this.#service() : (this.client.service ?? { baseUrl: '' })
    return URL.canParse(baseUrl, location.href) && isLoopbackHost(new URL(baseUrl, location.href).hostname)
  }

  #service(): ElementService {
    return {
      baseUrl: this.getAttribute('base-url') ?? '',
      basePath: this.getAttribute('base-path') ?? undefined,
      endpointPrefix: this.getAttribute('endpoint-prefix') ?? undefined,
      tokenStorageKey: this.getAttribute('token-storage-key') ?? undefined,
    }
  }

  #client(): SignInClient {
    if (this.client !== undefined) return this.client
    this.#made ??= desktopOf(this.#service())
    return this.#made
  }

  #order(): StartOrderOptions {
    const kind = this.getAttribute('kind') ?? 'login'
    if (kind !== 'login' && kind !== 'sign') throw new TypeError(`kind must be login or sign, not ${kind}`)
    const given = orderAttributes.filter((name) => this.hasAttribute(name))
    const camelCase = (name: string): string => name.replace(/-./g, (letter) => letter.slice(1).toUpperCase())
    const texts = given.map((name) => [camelCase(name), this.getAttribute(name)])
    return { kind, ...(Object.fromEntries(texts) as Partial<StartOrderOptions>) }
  }
}

/**
 * Mode after an order's end or an error: a new code for an error of the order, no button if this page can get no code,
 * else a retry.
 */
function modeAfter(end: OrderStatus | ClientErrorCode): ViewMode {
  if (end === 'ORIGIN_NOT_TRUSTED') return 'stuck'
  if (/rejected|cancelled/i.test(end)) return 'declined'
  if (/expired/i.test(end)) return 'expired'
  if (['NETWORK', 'STORE_UNAVAILABLE', 'UNEXPECTED_ANSWER'].includes(end)) return 'away'
  return /^(ORDER|COMPUTER)_/.test(end) ? 'again' : 'retry'
}

/** Texts for what happened to an approved order whose return code was awaited. */
const afterApproval: Partial<Record<OrderStatus, TextName>> = { rejected: 'stopped', expired: 'tooLate' }

function hasSignIn(client: SignInClient): client is SignInClient & SignInCalls {
  return ![client.signInWallet, client.prepareSignIn, client.issueNonce].includes(undefined)
}

/** The page's address, for wallet apps. They open https only, and a fragment may be lost on the way. */
function ownAddress(): string | undefined {
  return location.protocol === 'https:' ? location.href.replace(/#.*/s, '') : undefined
}

function ignore(): void {}

type EventMap = { [Name in keyof CountersignSignInEvents]: CustomEvent<CountersignSignInEvents[Name]> }

declare global {
  interface HTMLElementTagNameMap {
    'countersign-sign-in': CountersignSignIn
  }
  interface HTMLElementEventMap extends EventMap {}
}

define('countersign-sign-in', CountersignSignIn)
