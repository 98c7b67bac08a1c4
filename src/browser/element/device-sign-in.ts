import { given } from '../../shared/defined-fields.ts'
import type { ErrorReason, ReasonsOf } from '../../shared/errors.ts'
import { isLoopbackHost } from '../../shared/origin.ts'
import { type ServiceOptions, serviceOptionsPath } from '../../shared/rest-paths.ts'
import { isReturnPath } from '../../shared/return-path.ts'
import type { Session } from '../../shared/session.ts'
import { englishDeviceTexts } from '../../shared/texts/english-element.ts'
import { defaultTimeoutMs } from '../client/call.ts'
import type { ServiceAddress } from '../client/calls.ts'
import { type ClientErrorCode, type CountersignClientError, failureOf, isPassing } from '../client/errors.ts'
import { loadOnDemand } from '../client/page.ts'
import { defaultBasePath, defaultPrefix, restSignIn } from '../client/rest-api.ts'
import { forgetSentSignIn, readSentSignIn } from '../client/sent-sign-in.ts'
import { type SignInCalls, signInCalls } from '../client/sign-in.ts'
import { type CountersignWallets, defineWalletChooser } from '../wallets/chooser.ts'
import { findWallets } from '../wallets/find.ts'
import type { AppAddress, FoundWallet, WalletFinder } from '../wallets/found.ts'
import { type ReturnedSignIn, signInWithFound } from '../wallets/found-sign-in.ts'
import { type HubOptions, takeHubAnswer } from '../wallets/hub.ts'
import { type ElementService, partsOf } from './desktop.ts'
import { errorText, type SignInTexts } from './texts.ts'

/** Result of a sign-in with a wallet on this device. There is no order. */
export interface DeviceSignInResult {
  readonly ok: boolean
  readonly orderId?: undefined
  readonly status?: undefined
  readonly kind: 'login'
  /** The attribute `return-to`; "/" without it, and if it could lead to another origin. */
  readonly redirectTo: string
  /** Session token. Secret. */
  readonly token: string
  readonly session: Session
}

export { englishDeviceTexts }

/** Options of {@link DeviceSignIn}. */
export interface DeviceSignInOptions {
  /** The page's own client, or the service to make calls to. */
  readonly client: SignInCalls | ElementService
  /** Adapters whose wallets are listed. Default: all. */
  readonly adapterIds: readonly string[] | undefined
  readonly hub: HubOptions | undefined
  readonly extra: readonly FoundWallet[]
  /** What wallet apps open, on phones. Without it, none are offered. */
  readonly appAddress: AppAddress | undefined
  /** Whether people who have no wallet are led to some. */
  readonly walletHelp: boolean
  /** Whether the session token is stored. */
  readonly autoPersistToken: boolean
  /** Where the user goes next. Default "/". */
  readonly returnTo: string | undefined
  readonly texts: SignInTexts
  /** Shows a text to the user. */
  readonly say: (text: string) => void
  readonly onSignedIn: (result: DeviceSignInResult) => void
  readonly onError: (error: CountersignClientError) => void
}

/**
 * Signs in with a wallet on this device: lists those that are there, until it is stopped. The element imports it on
 * demand, because it brings all that finds wallets and speaks with them.
 */
export class DeviceSignIn {
  readonly #options: DeviceSignInOptions
  readonly #client: SignInCalls
  readonly #finder: WalletFinder
  readonly #list: CountersignWallets
  readonly #stopped = new AbortController()
  #texts: SignInTexts
  #running: { readonly controller: AbortController; readonly done: Promise<void> } | undefined
  /** Number of wallets that were chosen. */
  #turn = 0
  #returned: ReturnedSignIn | undefined

  /** Puts the list of wallets into `place`. */
  constructor(place: HTMLElement, options: DeviceSignInOptions) {
    const { client, adapterIds, hub, extra, appAddress } = options
    this.#options = options
    this.#texts = options.texts
    this.#client = 'signInWallet' in client ? client : deviceCallsOf(client)
    this.#finder = findWallets({
      extra,
      ...given({ adapterIds, hub }),
    })
    defineWalletChooser()
    const list = document.createElement('countersign-wallets')
    list.setAttribute('exportparts', exportedParts)
    this.#list = list
    list.finder = this.#finder
    list.adapterIds = adapterIds
    list.appAddress = appAddress
    list.walletHelp = options.walletHelp
    list.addEventListener('countersign:wallet', (event) => {
      // Not for the page, which may have a list of its own.
      event.stopPropagation()
      void this.#start(event.detail.wallet)
    })
    this.setTexts(options.texts)
    place.replaceChildren(list)
    options.say('')
    // So that the wallet can open in the tap itself. If this fails, the sign-in fetches a nonce.
    this.#client.prepareSignIn({ signal: this.#stopped.signal }).catch(() => {})
    if (hub !== undefined) void this.#resume(hub)
  }

  setTexts(texts: SignInTexts): void {
    this.#texts = texts
    this.#list.texts = texts.wallets ?? {}
  }

  /** Leaves the wallet that is being asked, and looks for no more. */
  stop(): void {
    this.#stopped.abort()
    this.#running?.controller.abort()
    this.#finder.stop()
    this.#list.remove()
  }

  /** Goes on after the way back from a wallet that took the place of the page. */
  async #resume(hub: HubOptions): Promise<void> {
    const sent = readSentSignIn()
    if (sent === undefined) return
    // If its library does not load, the user can ask the Hub again.
    const answer = await takeHubAnswer(hub).catch(() => undefined)
    const found = this.#finder.wallets.find(({ id }) => id === sent.walletId)
    if (answer === undefined || found === undefined) forgetSentSignIn()
    else if (!this.#stopped.signal.aborted) {
      this.#returned = { sent, answer }
      await this.#start(found)
    }
  }

  /** Starts a sign-in in place of one that waits for another wallet, which may never answer. */
  async #start(found: FoundWallet): Promise<void> {
    const turn = ++this.#turn
    const before = this.#running
    // Not awaited if no wallet is being asked, so that this one can open a window in the user gesture.
    if (before !== undefined) {
      before.controller.abort()
      await before.done
    }
    if (turn !== this.#turn || this.#stopped.signal.aborted) return
    const controller = new AbortController()
    const done = this.#signIn(found, controller.signal)
    this.#running = { controller, done }
    await done
    if (turn === this.#turn) this.#running = undefined
  }

  async #signIn(found: FoundWallet, signal: AbortSignal): Promise<void> {
    const { hub, autoPersistToken, returnTo = '/', say, onSignedIn, onError } = this.#options
    const returned = this.#returned?.sent.walletId === found.id ? this.#returned : undefined
    this.#list.selected = found.id
    this.#await()
    try {
      const { ok, token, session } = await signInWithFound(found, {
        client: this.#client,
        hub,
        returned,
        ask: (question) => this.#ask(found, signal, question),
        autoPersistToken,
        signal,
      })
      if (signal.aborted) return
      const redirectTo = isReturnPath(returnTo) ? returnTo : '/'
      onSignedIn({ ok, kind: 'login', redirectTo, token, session })
    } catch (thrown) {
      if (signal.aborted) return
      const error = failureOf(thrown)
      // Another try asks the wallet again, unless what it signed did not reach the service.
      if (!isPassing(error)) this.#returned = undefined
      this.#list.selected = undefined
      this.#list.disabled = false
      say(this.#explain(error))
      onError(error)
    }
  }

  /** Asks a wallet's user. Meanwhile another wallet can be chosen. */
  async #ask<T>(found: FoundWallet, signal: AbortSignal, question: () => T): Promise<Awaited<T>> {
    this.#list.disabled = false
    this.#options.say(this.#text('asking').replace('{wallet}', () => found.name))
    try {
      return await question()
    } finally {
      if (!signal.aborted) this.#await()
    }
  }

  /** Waits for the service. */
  #await(): void {
    this.#list.disabled = true
    this.#options.say(this.#text('verifying'))
  }

  #explain(error: CountersignClientError): string {
    const name = failures[error.code]
    return name === undefined ? errorText(error, this.#texts) : this.#text(name)
  }

  #text(name: keyof typeof englishDeviceTexts): string {
    return this.#texts.wallets?.[name] ?? englishDeviceTexts[name]
  }
}

/** Parts of the list under the names that they have as parts of the element, which has parts of its own. */
const exportedParts =
  'wallets, wallet, icon: wallet-icon, name: wallet-name, about: wallet-about, apps, apps-title, app, ' +
  'note: app-note, help, help-title, help-text'

/** Texts for what a wallet did, and for what the service says of one. */
const failures: Readonly<Partial<Record<ClientErrorCode, DeviceTextName>>> = {
  WALLET_DECLINED: 'declined',
  WALLET_CLOSED: 'closed',
  WALLET_BLOCKED: 'blocked',
  WALLET_BUSY: 'answerFirst',
  WALLET_WRONG_KEY: 'switched',
  WALLET_FAILED: 'walletFailed',
  WALLET_MISSING: 'walletFailed',
  ADAPTER_UNKNOWN: 'notAccepted',
  LOGIN_REFUSED: 'notAllowed',
  CONTRACT_WALLET_NEEDS_RPC: 'wrongNetwork',
  NONCE_EXPIRED: 'late',
  NONCE_NOT_FOUND: 'late',
} satisfies Record<ReasonsOf<'device'>, DeviceTextName> &
  Partial<Record<Exclude<ClientErrorCode, ErrorReason>, DeviceTextName>>

type DeviceTextName = keyof typeof englishDeviceTexts

/** The calls of a sign-in on this device. */
function deviceCallsOf(service: ElementService): SignInCalls {
  const { rest, parts } = partsOf(service)
  return signInCalls({
    ...parts,
    service: restSignIn(rest.call, service.endpointPrefix ?? defaultPrefix),
    defaults: {},
  })
}

/**
 * The demo wallet, for developers: offered if the service says so, and only if page and service are both at http
 * addresses that only this computer can reach. A page or a service behind a tunnel has users, and anything on their
 * pages can read the wallet's key. Its code is loaded only if it is offered.
 */
export async function offeredDemoWallet(
  service: ServiceAddress,
  { adapterIds, name }: { readonly adapterIds: readonly string[] | undefined; readonly name: string },
): Promise<FoundWallet | undefined> {
  if (![location.href, new URL(service.baseUrl, location.href).href].every(isOnThisComputer)) return undefined
  try {
    const { demoWallet, adapters } = await optionsOf(service)
    if (!demoWallet) return undefined
    const { openDemoWallet } = await loadOnDemand(() => import('../wallets/demo-wallet.ts'))
    const accepted = adapters.filter((id) => adapterIds === undefined || adapterIds.includes(id))
    const wallet = accepted.map((id) => openDemoWallet(id)).find((opened) => opened !== undefined)
    return wallet && { id: 'demo', name, kind: 'demo', adapterId: wallet.adapterId, connect: () => wallet }
  } catch {
    // The service does not answer: then there is no such wallet.
    return undefined
  }
}

/** The service's options. They are the same for every caller: the answer allows no credentials. */
async function optionsOf({ baseUrl, basePath = defaultBasePath }: ServiceAddress): Promise<ServiceOptions> {
  const address = baseUrl.replace(/\/+$/, '') + basePath + serviceOptionsPath
  const answer = await fetch(address, { credentials: 'omit', signal: AbortSignal.timeout(defaultTimeoutMs) })
  return (await answer.json()) as ServiceOptions
}

function isOnThisComputer(address: string): boolean {
  const { protocol, hostname } = new URL(address)
  return protocol === 'http:' && isLoopbackHost(hostname)
}
