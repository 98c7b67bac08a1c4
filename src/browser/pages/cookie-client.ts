import { signInPath } from '../../shared/page-names.ts'
import type { CommonValues, PageValues } from '../../shared/page-values.ts'
import { type CountersignClient, createCountersignClient, type TokenStorage } from '../client/index.ts'
import { tryStorage } from '../client/page.ts'
import type { Fetcher } from '../client/rest-api.ts'

/**
 * Storage for a client whose session is in the cookie only. A token that the application keeps under the same key is
 * never sent: it may be another session's than the cookie's. A sign-in removes it, because the application would send
 * it in place of the cookie.
 */
const cookieOnly: TokenStorage = {
  getItem: () => null,
  setItem: () => {},
  removeItem: (key) => tryStorage('localStorage', (storage) => storage.removeItem(key)),
}

/** The client of a page whose session is in the cookie only. All calls are under the base path. */
export function cookieClient(
  { basePath, endpointPrefix }: Pick<PageValues['inbox'], 'basePath' | 'endpointPrefix'>,
  fetch?: Fetcher,
): CountersignClient {
  return createCountersignClient({
    basePath,
    endpointPrefix,
    autoPersistToken: false,
    storage: cookieOnly,
    fetch,
  })
}

/**
 * Address of the sign-in page, which leads back to this page and speaks the language that its address names. With
 * `isAgain`, it asks signed-in users, too.
 */
export function signInAddress({ basePath }: CommonValues, isAgain = false): string {
  const returnTo = location.pathname + location.search
  const query = new URLSearchParams({ returnTo, ...(isAgain ? { again: '1' } : {}) })
  const locales = new URL(location.href).searchParams.get('ui_locales')
  if (locales !== null) query.set('ui_locales', locales)
  return `${basePath}${signInPath}?${query}`
}
