import type { TokenStorage } from '../client/index.ts'
import { tryStorage } from '../client/page.ts'

/**
 * Storage for a client whose session is in the cookie only. A token that the application keeps under the same key is
 * never sent: it may be another session's than the cookie's. A sign-in removes it, because the application would send
 * it in place of the cookie.
 */
export const cookieOnly: TokenStorage = {
  getItem: () => null,
  setItem: () => {},
  removeItem: (key) => tryStorage('localStorage', (storage) => storage.removeItem(key)),
}
