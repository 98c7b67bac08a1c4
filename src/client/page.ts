/** What the client needs to know of the page that it runs in. Outside of a page (in Node) it is always in view. */

/** Whether nobody can see the page. */
export function isHidden(): boolean {
  return globalThis.document?.visibilityState === 'hidden'
}

/**
 * Calls `listener` when the page comes back to life: it becomes visible, or the network returns. Returns the function that
 * ends it.
 */
export function onWake(listener: () => void): () => void {
  const onVisibility = (): void => {
    if (!isHidden()) listener()
  }
  globalThis.document?.addEventListener('visibilitychange', onVisibility)
  globalThis.addEventListener?.('online', listener)
  return () => {
    globalThis.document?.removeEventListener('visibilitychange', onVisibility)
    globalThis.removeEventListener?.('online', listener)
  }
}
