/** The visibility of the page that the client runs in. Outside of a page, such as in Node, it counts as visible. */

/** Whether the page is hidden: in a background tab, a minimised window, or behind a locked screen. */
export function isHidden(): boolean {
  return globalThis.document?.visibilityState === 'hidden'
}

/**
 * Calls `listener` when the page wakes up: it becomes visible, or the network returns. Returns a function that removes the
 * listener.
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
