import { equalInConstantTime, hashToken, randomText } from '../base/token.ts'
import { cookieName, cookiesBeginning, setCookie } from '../shared/header-text.ts'

/** Life of an interaction in seconds. */
export const interactionSeconds = 10 * 60

/** A cookie with a secret of a browser. */
export interface BrowserCookie {
  readonly name: string
  readonly secret: string
}

/** Most cookies by which an interaction recognises its browser. */
export const mostCookies = 5

/** Most cookies of a request that are read: enough for as many tabs that open at once. */
const mostRead = 50

/**
 * Cookies by which an interaction recognises the browser that began it. A browser has one. Several tabs that open at
 * once get one each, under a name of its own, so that none replaces another's. The sixth tab and further ones then move
 * their interactions to the five oldest cookies, and delete their own. A cookie lives as long as the last interaction
 * that began with it.
 */
export class BrowserCookies {
  readonly #isSecure: boolean

  /** `isSecure`: people reach the issuer by https. */
  constructor(isSecure: boolean) {
    this.#isSecure = isSecure
  }

  /** The cookies of a request's header, oldest first. Browsers send the oldest first, too; at most 50 are read. */
  in(header: string | undefined): readonly BrowserCookie[] {
    const found = [...cookiesBeginning(header, this.#beginning, mostRead)].map(([name, secret]) => ({ name, secret }))
    return found.sort((one, other) => (one.name < other.name ? -1 : 1))
  }

  /** A new one. Its name begins with the time, epoch milliseconds. */
  make(now: number): BrowserCookie {
    return { name: `${this.#beginning}${now.toString(36)}${randomText(3)}`, secret: randomText(32) }
  }

  /** The Set-Cookie header that makes a browser keep it. */
  keep({ name, secret }: BrowserCookie): string {
    return setCookie(name, secret, interactionSeconds)
  }

  /** The Set-Cookie header that makes a browser forget it. */
  forget({ name }: BrowserCookie): string {
    return setCookie(name, '', 0)
  }

  get #beginning(): string {
    return cookieName('countersign_oidc_browser_', this.#isSecure)
  }
}

/** Whether an interaction was begun by the browser that has these secrets. */
export function isOfBrowser(
  { browsers }: { readonly browsers: readonly string[] },
  secrets: readonly string[],
): boolean {
  const hashes = secrets.map(hashToken)
  return browsers.some((each) => hashes.some((own) => equalInConstantTime(own, each)))
}

/** What an interaction keeps of the secrets of its browser, of which the oldest comes first. */
export function browsersOf(secrets: readonly string[]): string[] {
  return secrets.slice(0, mostCookies).map(hashToken)
}
