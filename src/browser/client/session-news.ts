import type { Session } from '../../shared/session.ts'
import { Listeners } from './listeners.ts'
import { isHidden, onWake, Stopwatch } from './page.ts'
import { retrying } from './retry.ts'
import { defaultTokenKey, type TokenStoreOptions } from './token-store.ts'

/** Receives the session; `undefined` once the user is signed out. */
export type SessionListener = (session: Session | undefined) => void

/** Service and key of the token for which {@link SessionNews} are. */
type SessionNewsOptions = Pick<TokenStoreOptions, 'tokenStorageKey'> & { readonly baseUrl: string }

/**
 * Time for which a phone can take back the sign-in that it approved, and between two looks at the session until then,
 * in milliseconds.
 */
const takeBack = { forMs: 600_000, everyMs: 5_000 } as const

/**
 * News of the session between the tabs and clients of one page origin, for one service and one key of the token. The
 * channel carries the news that something changed, and nothing else: its listeners ask the service. Outside of pages,
 * only this client gets the news.
 */
export class SessionNews {
  readonly #options: SessionNewsOptions
  /** Asks the service for the session. */
  readonly #ask: () => Promise<Session | undefined>
  readonly #listeners = new Listeners<Session | undefined>(() => hear(nameOf(this.#options), () => void this.#heard()))
  /** What was published last: the identifier of a session, or `undefined` for none. */
  #published: { readonly id: string | undefined } | undefined
  /**
   * Number of changes that were heard or made. An answer of the service counts only if there was none since the
   * question.
   */
  #changes = 0
  #followed: string | undefined
  #stopFollowing = (): void => {}

  constructor(options: SessionNewsOptions, ask: () => Promise<Session | undefined>) {
    this.#options = options
    this.#ask = ask
  }

  /** Calls `listener` when the session changes, here or elsewhere. Returns a function that ends it. */
  listen(listener: SessionListener): () => void {
    return this.#listeners.add(listener)
  }

  /**
   * Looks again and again at a session that an order has made, for as long as its phone can take that back: while the
   * page is visible, and at once when it is shown.
   */
  follow(session: Session | undefined): void {
    if (globalThis.document === undefined || session?.id === this.#followed) return
    this.#stopFollowing()
    this.#followed = session?.id
    if (session?.orderId === undefined || Date.now() - session.createdAt > takeBack.forMs) return
    const since = new Stopwatch()
    let isLooking = false
    const look = async (): Promise<void> => {
      if (since.elapsedMs > takeBack.forMs) return this.#stopFollowing()
      if (isLooking || isHidden() || this.#listeners.isEmpty) return
      isLooking = true
      const change = this.#changes
      // Without an answer, nothing has changed.
      const now = await this.#ask().catch(() => session)
      isLooking = false
      if (change === this.#changes && now?.id !== session.id) this.#tellHere(now)
    }
    const timer = setInterval(() => void look(), takeBack.everyMs)
    const stopWaking = onWake(() => void look())
    this.#stopFollowing = () => {
      clearInterval(timer)
      stopWaking()
    }
  }

  /** Publishes a change of this client. */
  publish(session: Session | undefined): void {
    this.#changes++
    this.#tellHere(session)
    announceSession(this.#options)
  }

  async #heard(): Promise<void> {
    const change = ++this.#changes
    try {
      // Tried again for half a minute: an answer that is lost would leave this tab behind the others.
      const session = await retrying(() => this.#ask(), undefined)
      if (change === this.#changes) this.#tellHere(session)
    } catch {
      // The service does not answer. What the page shows may be right; its next call finds out.
    }
  }

  #tellHere(session: Session | undefined): void {
    this.follow(session)
    if (this.#published !== undefined && this.#published.id === session?.id) return
    this.#published = { id: session?.id }
    this.#listeners.notify(session)
  }
}

/** Announces to all tabs and clients that the session has changed. */
export function announceSession(options: SessionNewsOptions): void {
  if (globalThis.document === undefined) return
  try {
    // Not kept open: an open channel can keep a page out of the browser's back-forward cache.
    const channel = new BroadcastChannel(nameOf(options))
    channel.postMessage('changed')
    channel.close()
  } catch {
    // Blocked by the browser's privacy settings: the other tabs find out at their next call.
  }
}

/** Name under which the clients of one service and one key of the token hear each other. */
function nameOf({ tokenStorageKey = defaultTokenKey, baseUrl }: SessionNewsOptions): string {
  const page = globalThis.document === undefined ? undefined : location.origin
  const service = URL.canParse(baseUrl, page) ? new URL(baseUrl, page).href.replace(/\/$/, '') : baseUrl
  return `countersign.session ${tokenStorageKey} ${service}`
}

/** Calls `heard` whenever another tab, or another client in this one, says something under this name. */
function hear(name: string, heard: () => void): () => void {
  if (globalThis.document === undefined) return () => {}
  const channel = new BroadcastChannel(name)
  channel.onmessage = heard
  return () => channel.close()
}
