/** The page and the device that the client runs in. Outside of a page, such as in Node, it counts as visible. */

/** Whether the page is hidden: in a background tab, a minimised window, or behind a locked screen. */
export function isHidden(): boolean {
  return globalThis.document?.visibilityState === 'hidden'
}

/**
 * Calls `listener` when the page wakes up: it becomes visible, or the network returns. Returns a function that removes
 * the listener.
 */
export function onWake(listener: () => void): () => void {
  const stopListening = onVisibility(() => isHidden() || listener())
  globalThis.addEventListener?.('online', listener)
  return () => {
    stopListening()
    globalThis.removeEventListener?.('online', listener)
  }
}

/** Calls `listener` once the page has been hidden for so long, in milliseconds. Returns a function that ends it. */
export function onceHidden(ms: number, listener: () => void): () => void {
  let timer: ReturnType<typeof setTimeout> | undefined
  const look = (): void => {
    clearTimeout(timer)
    if (isHidden()) timer = setTimeout(listener, ms)
  }
  const stopListening = onVisibility(look)
  look()
  return () => {
    clearTimeout(timer)
    stopListening()
  }
}

/** Waits until the page is visible, or until `signal` aborts. */
export function untilShown(signal: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve) => {
    const look = (): void => {
      if (isHidden() && !signal?.aborted) return
      stopListening()
      resolve()
    }
    const stopListening = onVisibility(look)
    signal?.addEventListener('abort', look)
    look()
  })
}

function onVisibility(listener: () => void): () => void {
  globalThis.document?.addEventListener('visibilitychange', listener)
  return () => globalThis.document?.removeEventListener('visibilitychange', listener)
}

/**
 * Loads a script on demand. Firefox remembers a load that failed and never repeats it, so the second try is made at
 * another address: that of the script, which the browser's error names, with a query. An import map's `integrity`
 * covers the exact address only, so a page with such a map has no second try.
 */
export async function loadOnDemand<Script>(load: () => Promise<Script>): Promise<Script> {
  try {
    return await load()
  } catch (thrown) {
    // Only what the browser says of a failed load: an error of the script's own can name any address.
    const [, address] = /imported module: (https?:\/\/\S+)/.exec(String(thrown)) ?? []
    const maps = [...document.querySelectorAll('script[type=importmap]')]
    if (address === undefined || maps.some(({ textContent }) => textContent?.includes('integrity'))) throw thrown
    return await import(/* webpackIgnore: true */ /* @vite-ignore */ `${address}?${Date.now()}`)
  }
}

/**
 * Whether this is a phone or a tablet: there, wallets are apps with a browser of their own, and windows cover the page.
 * By the user agent, which can be wrong; iPads call themselves Macs.
 */
export function isPhone(): boolean {
  const { userAgent = '', maxTouchPoints = 0 } = globalThis.navigator ?? {}
  return /Android|iPhone|iPad|iPod/.test(userAgent) || (/Macintosh/.test(userAgent) && maxTouchPoints > 1)
}

/** Measures the time since it was made. */
export class Stopwatch {
  readonly #wall = Date.now()
  readonly #monotonic = performance.now()

  /** Time since then, in milliseconds; rather too long than too short. */
  get elapsedMs(): number {
    // The wall clock may be set back; the monotonic clock may stand still while the device sleeps.
    return Math.max(Date.now() - this.#wall, performance.now() - this.#monotonic)
  }
}

/**
 * Uses one of the browser's storages. Returns `undefined` if it is full or blocked, as by a browser's privacy settings:
 * then already reading the property throws.
 */
export function tryStorage<T>(name: 'localStorage' | 'sessionStorage', use: (storage: Storage) => T): T | undefined {
  try {
    return use(globalThis[name])
  } catch {
    return undefined
  }
}
