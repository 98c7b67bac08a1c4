/** The address at which an order continues in another browser: `…/cross-device/continue/{ticket}`. */
export interface HandOverLink {
  /** Secret. */
  readonly ticket: string
  readonly orderId: string
  /** The path with the order's identifier in place of the ticket. A reload at it shows the same page. */
  readonly pathAfter: string
}

/**
 * Reads the ticket: a type prefix, 43 characters of base64url, and the order's identifier. `undefined` if there is
 * none.
 */
export function readHandOverLink(pathname: string): HandOverLink | undefined {
  const found = /^(.*\/cross-device\/continue\/)(csh_[A-Za-z0-9_-]{43}([A-Za-z0-9_-]{1,64}))$/.exec(pathname)
  if (found === null) return undefined
  const [, folder, ticket, orderId] = found as unknown as [string, string, string, string]
  return { ticket, orderId, pathAfter: folder + orderId }
}

/** Whether a path is where orders continue from another browser. */
export function isContinued(pathname: string): boolean {
  return /\/cross-device\/continue\//.test(pathname)
}
