import type { ListedApp } from '../core/users/connected-apps.ts'
import type { IssuerRoute, IssuerRoutes } from '../http/app.ts'
import type { Issuer, IssuerFile } from '../oidc/issuer.ts'
import type { IssuerParts } from '../oidc/parts.ts'
import type { Settings } from './config.ts'

/** Paths of the issuer's metadata (OpenID Connect Discovery 1.0, 4; RFC 8414, 3). */
const discoveryPaths = ['/.well-known/openid-configuration', '/.well-known/oauth-authorization-server']

/** The OpenID Connect issuer of a service, which is loaded only if there is a clients file. */
export class LiveIssuer implements IssuerRoutes {
  readonly places: readonly string[] = discoveryPaths
  readonly #parts: IssuerParts
  #issuer: Issuer | undefined

  constructor(parts: IssuerParts) {
    this.#parts = parts
  }

  /** Loads it. Rejects with a `TypeError` of one line if the clients file does not fit. */
  async open(): Promise<void> {
    const { createIssuer } = await import('../oidc/issuer.ts')
    this.#issuer = await createIssuer(this.#parts)
  }

  find(path: string): IssuerRoute | undefined {
    return this.#issuer?.find(path)
  }

  get keys(): readonly object[] {
    return this.#issuer?.keys ?? []
  }

  /** The applications that a user has connected, those used last first. */
  async listApps(userId: string): Promise<ListedApp[]> {
    return (await this.#issuer?.listApps(userId)) ?? []
  }

  /** Number of clients. */
  get clientCount(): number {
    return this.#issuer?.clientCount ?? 0
  }

  /** Reads files and keys again. Resolves with what puts them in force, and returns the files that have changed. */
  async prepare(): Promise<() => readonly IssuerFile[]> {
    return (await this.#issuer?.prepare()) ?? (() => [])
  }

  /** Stops sending logouts, and waits for those on their way, for at most `graceMs`. */
  async close(graceMs: number): Promise<void> {
    await this.#issuer?.close(graceMs)
  }
}

/** The issuer of a service with these settings, not loaded yet; `undefined` without a clients file. */
export function issuerFor(
  settings: Settings,
  parts: Omit<IssuerParts, 'settings' | 'discoveryPaths'>,
): LiveIssuer | undefined {
  const { clients, email, claims, people } = settings.oidc
  if (clients === undefined) return undefined
  if (settings.sessionHost !== undefined) {
    throw new TypeError(
      'oidc.clients (COUNTERSIGN_OIDC_CLIENTS) cannot be set with sessionHost: the issuer needs the sessions of the service itself',
    )
  }
  const { appName, basePath, pages, accessTokens, sessionAbsoluteTtlSeconds: sessionSeconds } = settings
  const { logoUrl, accentColor, textsFile } = pages
  const looks = { appName, basePath, logoUrl, accentColor, textsFile }
  const files = { clientsFile: clients, peopleFile: people }
  const audiences = accessTokens.audiences ?? []
  return new LiveIssuer({
    ...parts,
    discoveryPaths,
    settings: { ...looks, ...files, email, claims, audiences, sessionSeconds },
  })
}
