import { CountersignClientError } from '../client/errors.ts'
import { isPhone, tryStorage } from '../client/page.ts'
import type { Wallet } from '../client/wallet.ts'
import { readWalletAnswer, type WalletSignature, walletFailure } from '../client/wallet-answer.ts'
import type { Search } from './list.ts'
import { marks } from './wallet-logos.ts'

/**
 * The part of the module @nimiq/hub-api that is used. Whether its class comes wrapped a second time depends on the
 * bundler.
 */
export interface HubModule {
  readonly default: HubApiClass | { readonly default: HubApiClass }
}

/** The part of `HubApi` that is used. */
export interface HubApiClass {
  new (endpoint: string): HubApi
  readonly RequestType: { readonly SIGN_MESSAGE: unknown }
  readonly PopupRequestBehavior: new (features: string, options: { overlay: boolean }) => unknown
  readonly RedirectRequestBehavior: new (returnUrl: string, state: HubState) => unknown
}

/** The part of an instance of `HubApi` that is used. */
export interface HubApi {
  signMessage(request: { appName: string; message: string }, behavior: unknown): Promise<unknown>
  on(
    command: unknown,
    resolve: (answer: unknown, state: unknown) => void,
    reject: (error: Error, state: unknown) => void,
  ): void
  checkRedirectResponse(): Promise<void>
}

/** Options of the Nimiq Hub. */
export interface HubOptions {
  /** Imports the Hub's library, the package @nimiq/hub-api, dynamically. Called as the search begins. */
  readonly load: () => Promise<HubModule>
  /** Application name that the Hub shows to its user. */
  readonly appName: string
  /** Address of the Hub. Default `https://hub.nimiq.com`. */
  readonly url?: string
  /**
   * Whether the Hub takes the place of the page, and leads back to it, rather than opening in a window. Default: on
   * phones and tablets, where windows cover the page, if the page is at https: browsers do not tell other pages that
   * they come from the Hub, and its library drops what it cannot place. After the way back, call {@link takeHubAnswer}.
   */
  readonly redirect?: boolean
  /**
   * Address to lead back to, of the page's own origin, without a fragment. Default: the page's, without its fragment.
   */
  readonly returnUrl?: string
}

/** What the page gets back after a redirect to the Hub: a signature, or why there is none. */
export type HubAnswer = {
  /** The text that was to be signed. */
  readonly message: string
} & HubOutcome

export type HubOutcome =
  | { readonly signature: WalletSignature; readonly error?: undefined }
  | { readonly signature?: undefined; readonly error: CountersignClientError }

/** Kept by the Hub's library in the session storage of the tab, from the redirect to the way back. */
export interface HubState {
  readonly countersign: string
}

const defaultUrl = 'https://hub.nimiq.com'

/** Lists the Nimiq Hub. Its library is loaded at once, so that `sign` can open a window in a user gesture. */
export function searchHub(options: HubOptions): Search {
  return (found) => {
    let loaded: HubApiClass | undefined
    const load = async (): Promise<HubApiClass> => {
      loaded ??= await loadHub(options)
      return loaded
    }
    // A failure shows when it is used: then it is loaded again.
    load().catch(() => {})
    return found.add({
      id: 'nimiq-hub',
      name: 'Nimiq Hub',
      icon: marks['nimiq-pay'],
      adapterId: 'nimiq',
      kind: 'window',
      connect: () => (loaded === undefined ? loadedWallet(load, options) : hubWallet(loaded, options)),
    })
  }
}

async function loadHub({ load }: HubOptions): Promise<HubApiClass> {
  const { default: found } = await load()
  return 'default' in found ? found.default : found
}

async function loadedWallet(load: () => Promise<HubApiClass>, options: HubOptions): Promise<Wallet> {
  try {
    return hubWallet(await load(), options)
  } catch (cause) {
    throw new CountersignClientError('WALLET_FAILED', 'The library of the Nimiq Hub could not be loaded', { cause })
  }
}

/**
 * The wallet of the Nimiq Hub. With a window, call `sign` in a user gesture. With a redirect, `sign` leaves the page
 * and never resolves: the answer is there when the page loads again.
 */
function hubWallet(Hub: HubApiClass, options: HubOptions): Wallet {
  const { appName, url = defaultUrl, returnUrl } = options
  const hub = new Hub(url)
  return {
    adapterId: 'nimiq',
    async sign(message) {
      try {
        if (leavesPage(options)) return await leave(message)
        // Called before anything is awaited, as a part of the user gesture. The library's overlay is made of markup in
        // a string, which Trusted Types forbid.
        return await hub.signMessage({ appName, message }, new Hub.PopupRequestBehavior(features(), { overlay: false }))
      } catch (thrown) {
        throw walletFailure(thrown)
      }
    },
  }

  async function leave(message: string): Promise<never> {
    showReferrer()
    const behavior = new Hub.RedirectRequestBehavior(returnUrl ?? pageUrl(), { countersign: message })
    await hub.signMessage({ appName, message }, behavior)
    return new Promise(() => {})
  }
}

/** Whether the Hub takes the place of the page. */
export function leavesPage({ redirect }: HubOptions): boolean {
  return redirect ?? (isPhone() && location.protocol === 'https:')
}

/** The window in the place and size that the Hub's library gives it. */
function features(): string {
  return `left=${Math.round(innerWidth / 2 - 400)},top=75,width=800,height=850,location=yes,dependent=yes`
}

/**
 * The Hub's answer to a request that left this page; `undefined` if the page did not come back from the Hub. Call it
 * once, as the page loads, before anything changes the page's address: the answer is in its fragment, and the call
 * removes it. If the page is loaded again, it gets the same answer again.
 */
export async function takeHubAnswer(options: HubOptions): Promise<HubAnswer | undefined> {
  if (!mayBeBack()) return undefined
  const Hub = await loadHub(options)
  const hub = new Hub(options.url ?? defaultUrl)
  let taken: HubAnswer | undefined
  hub.on(
    Hub.RequestType.SIGN_MESSAGE,
    (answer, state) => {
      taken = answered(state, () => ({ signature: readWalletAnswer(answer) }))
    },
    (error, state) => {
      taken = answered(state, () => ({ error: hubFailure(error) }))
    },
  )
  await hub.checkRedirectResponse()
  return taken
}

function answered(state: unknown, read: () => HubOutcome): HubAnswer | undefined {
  const { countersign: message } = (state ?? {}) as Partial<HubState>
  // Another request of the page's.
  if (typeof message !== 'string') return undefined
  try {
    return { message, ...read() }
  } catch (thrown) {
    return { message, error: walletFailure(thrown) }
  }
}

/** The library says that a request was aborted if the user went back in the browser's history. */
function hubFailure(error: Error): CountersignClientError {
  return error.message === 'Request aborted'
    ? new CountersignClientError('WALLET_CLOSED', 'The user came back from the Hub without an answer', { cause: error })
    : walletFailure(error)
}

/** Whether the address or the history has what the library looks for, so that it is not loaded without need. */
function mayBeBack(): boolean {
  const state: unknown = history.state
  return (
    /[#&]status=/.test(location.hash) ||
    new URLSearchParams(location.search).has('rpcId') ||
    (typeof state === 'object' && state !== null && 'rpcBackRejectionId' in state)
  )
}

/** Removes what the Hub's library keeps of requests and answers, in the tab and in the page's address. */
export function forgetHubAnswer(): void {
  // If the storage is blocked, the library has kept nothing either.
  tryStorage('sessionStorage', (storage) => {
    const keys = Object.keys(storage).filter((key) => /^(rpcRequests$|response-\d+$)/.test(key))
    for (const key of keys) storage.removeItem(key)
  })
  const url = new URL(location.href)
  if (!url.searchParams.has('rpcId')) return
  url.searchParams.delete('rpcId')
  history.replaceState(null, '', url)
}

function pageUrl(): string {
  const url = new URL(location.href)
  url.hash = ''
  // Of an earlier answer.
  url.searchParams.delete('rpcId')
  return url.href
}

/**
 * The Hub takes requests only from pages whose origin it sees, in the referrer, which pages with a strict policy do not
 * send.
 */
function showReferrer(): void {
  const policy = document.createElement('meta')
  policy.name = 'referrer'
  policy.content = 'strict-origin'
  document.head.append(policy)
}
