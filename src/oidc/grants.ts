import { hash } from 'node:crypto'
import { isDeepStrictEqual } from 'node:util'
import type { RequestContext } from '../base/request.ts'
import { randomText } from '../base/token.ts'
import type { Session } from '../core/users/host.ts'
import type { Offered } from './clients.ts'
import { GrantsFull, offlineMs } from './connected-apps.ts'
import type { IssuerParts } from './issuer-parts.ts'
import type { ReadRecord, SealedRecords } from './sealed-records.ts'
import { type EndParts, noteEnding } from './session-ends.ts'

/** A grant, with the session that it belongs to. */
export interface GrantRecord {
  readonly accountId: string
  readonly clientId: string
  readonly sessionId: string
  readonly iat: number
  readonly exp: number
  readonly allowed: readonly Permission[]
  /** The user's connection of the application under which it was given. */
  readonly connection: string
}

/** Permissions that a client gets. */
export interface Gift {
  readonly clientId: string
  readonly asked: ReadonlySet<Permission>
  /** Whether the user has been asked, and has allowed it. */
  readonly isAllowed: boolean
  /** Whether it rests on an earlier consent, which the user may withdraw at the same time. Default: false. */
  readonly needsConsent?: boolean
  /** The request that gives it, for the audit trail. */
  readonly request?: RequestContext | undefined
}

/** Mark of a grant that was removed. */
interface RemovedGrant {
  readonly removed: true
}

/** Most grants of a session, one for each client. */
const maxGrants = 100

const offlineLife = { ttlMs: offlineMs } as const

const fullSession = `the session has ${maxGrants} applications, which is the most; sign out, then sign in again`

const grantKind = 'Grant'

interface GrantParts extends EndParts, Pick<IssuerParts, 'store' | 'audit'> {
  readonly host: IssuerParts['host']
  readonly records: SealedRecords
  readonly settings: Pick<IssuerParts['settings'], 'sessionAbsoluteTtlSeconds'>
}

/**
 * The grants of sessions: one for each session and client, so that two tabs of a client share it. Its random id is
 * in the session's list, which changes by compare-and-set, before the grant is stored. All that is issued under a grant
 * counts only while the grant is there, so taking it away ends codes, refresh tokens and opaque access tokens in one
 * step. A mark takes its place: the next grant has another id, and nothing in flight brings the old one back.
 */
export class Grants {
  readonly #parts: GrantParts
  readonly #life: { readonly ttlMs: number }

  constructor(parts: GrantParts) {
    this.#parts = parts
    this.#life = { ttlMs: parts.settings.sessionAbsoluteTtlSeconds * 1000 }
  }

  /** The id of the grant of a session for a client, or `undefined`. */
  async liveIdOf(session: Session, clientId: string): Promise<string | undefined> {
    const id = await this.idOf(session.id, clientId)
    const found = await this.read(id)
    return found?.clientId === clientId && found.sessionId === session.id ? id : undefined
  }

  /** The id that a session's list has for a client. The grant itself may be gone. */
  async idOf(sessionId: string, clientId: string): Promise<string | undefined> {
    return (await this.#parts.sessionClients.of(sessionId)).get(clientId)
  }

  async read(id: string | undefined): Promise<GrantRecord | undefined> {
    const record = id === undefined ? undefined : (await this.#find(id))?.record
    if (record === undefined || 'removed' in record || record.exp * 1000 <= this.#parts.store.now()) return undefined
    const isConnected = (await this.#parts.apps.find(record.accountId, record)) !== undefined
    return isConnected ? record : undefined
  }

  /** Notes that the application of a grant was used, if there is one. */
  async use(grant: GrantRecord | undefined): Promise<void> {
    if (grant !== undefined) await this.#parts.apps.use(grant.accountId, grant)
  }

  /**
   * Adds permissions to the grant of a session for a client, made if there is none, and connects the application.
   * Called once it is decided that it gets them. Resolves with the grant's id; with `undefined` if there is nothing to
   * give, the consent that it needs is gone, or the session has ended: if it ends meanwhile, the grant is gone, too.
   * Rejects with {@link GrantsFull}, and gives nothing, if the session has 100 grants for others, or the user 100
   * applications none of which it may end.
   */
  async give(session: Session, gift: Gift): Promise<string | undefined> {
    const { clientId, asked } = gift
    if (asked.size === 0) return undefined
    const { records, store, apps, host } = this.#parts
    const { id: sessionId, userId: accountId } = session
    const isLive = async () => (await host.findSession(sessionId)) !== undefined
    for (;;) {
      // A session that has ended connects nothing, and so ends no other application either.
      if (!(await isLive())) return undefined
      const id = await this.#idFor(sessionId, clientId)
      const connection = await this.#connect(session, gift).catch(async (thrown) => {
        if (thrown instanceof GrantsFull) await this.#leave(sessionId, clientId)
        throw thrown
      })
      if (connection === undefined) {
        await this.#leave(sessionId, clientId)
        return undefined
      }
      const found = await this.#find(id)
      const before = found?.record
      // A grant that was taken away, or whose connection has ended, has a successor of another id.
      if (before !== undefined && ('removed' in before || before.connection !== connection)) continue
      const former = before?.allowed ?? []
      const isOffline = asked.has('offline_access')
      const all = new Set([...former, ...asked])
      const life = all.has('offline_access') ? offlineLife : this.#life
      const iat = Math.floor(store.now() / 1000)
      const times = { iat, exp: iat + life.ttlMs / 1000 }
      const record: GrantRecord = { accountId, clientId, sessionId, ...times, allowed: [...all], connection }
      // Offline access begins anew with each consent, and its grant with it.
      const isKept = all.size === former.length && !isOffline
      // Otherwise another tab was faster, or the grant was taken away.
      if (!isKept && !(await records.put(found, { kind: grantKind, id, record, life }))) continue
      // After the grant is stored: the end of a session finds the grant in its list, or is seen here.
      if (await isLive()) {
        if (!isOffline) return id
        if (!(await apps.beginOffline(accountId, { clientId, connection }, sessionId))) continue
        // Again after offline access has begun: a revocation whose process dies may not have reached it.
        if (await isLive()) return id
      }
      await this.remove(id)
      // What other applications have of the session outlives a sign-out.
      await apps.leaveOffline(accountId, clientId, sessionId)
      return undefined
    }
  }

  /**
   * Gives what a user has just allowed on a page, and records that. Resolves as {@link give} does, or with its refusal
   * if there is no room; with `undefined` also if the page has not shown just that: the clients file may have changed.
   */
  async allow(session: Session, gift: Gift & { readonly shown: unknown }): Promise<string | GrantsFull | undefined> {
    const { clientId, asked, shown, request = {} } = gift
    if (!isDeepStrictEqual(shown, [...asked])) return undefined
    const given = await this.give(session, gift).catch((thrown: unknown) => {
      if (thrown instanceof GrantsFull) return thrown
      throw thrown
    })
    const by = { userId: session.userId, sessionId: session.id, clientId, scope: scopesIn(asked) }
    if (typeof given === 'string') this.#parts.audit.record({ type: 'app.connected', ...by }, request)
    return given
  }

  /** Connects the application, with offline access if asked for. Another of the user's may have to end for it. */
  async #connect(session: Session, gift: Gift): Promise<string | undefined> {
    const { clientId, asked, isAllowed, needsConsent, request } = gift
    const { apps, audit } = this.#parts
    const { userId, id: sessionId, orderId } = session
    const offline = asked.has('offline_access') ? session : undefined
    const given = { clientId, isOfOrder: orderId !== undefined, scopes: [...asked], isAllowed }
    const wanted = { ...given, needsConsent, offline }
    return await apps.connect(userId, wanted, {
      ending: (app) => noteEnding(this.#parts, userId, app),
      ended: (each) => audit.record({ type: 'app.disconnected', userId, sessionId, clientId: each }, request ?? {}),
    })
  }

  /** Removes a grant, with all that was issued under it. Resolves with what it was; `undefined` if there was none. */
  async remove(id: string): Promise<GrantRecord | undefined> {
    const record: RemovedGrant = { removed: true }
    for (;;) {
      const found = await this.#find(id)
      if (found !== undefined && 'removed' in found.record) return undefined
      const mark = { kind: grantKind, id, record, life: offlineLife }
      if (await this.#parts.records.put(found, mark)) return found?.record as GrantRecord | undefined
    }
  }

  /**
   * The id of a session's grant for a client: the one in the session's list, unless its grant counts no more; otherwise
   * a new one, which is added to the list. An id without a grant comes from another tab, which is about to store the
   * grant. In a full list, clients whose grants count no more make room.
   */
  async #idFor(sessionId: string, clientId: string): Promise<string> {
    let id = ''
    await this.#parts.sessionClients.change(sessionId, this.#life.ttlMs, async (grants) => {
      const known = grants.get(clientId)
      id = known === undefined || (await this.#isOver(known)) ? randomText(32) : known
      if (id === known) return undefined
      const others = [...grants].filter(([each]) => each !== clientId)
      const kept = others.length < maxGrants ? others : await this.#counting(others)
      if (kept.length >= maxGrants) throw new GrantsFull(fullSession)
      return new Map([...kept, [clientId, id]])
    })
    return id
  }

  /** Takes a client that gets nothing off a session's list, unless it has had a grant before. */
  async #leave(sessionId: string, clientId: string): Promise<void> {
    await this.#parts.sessionClients.change(sessionId, this.#life.ttlMs, async (grants) => {
      const id = grants.get(clientId)
      if (id === undefined || (await this.#find(id)) !== undefined) return undefined
      return new Map([...grants].filter(([each]) => each !== clientId))
    })
  }

  /** Whether a grant has been stored, and counts no more. */
  async #isOver(id: string): Promise<boolean> {
    return (await this.#find(id)) !== undefined && (await this.read(id)) === undefined
  }

  /** The clients of a session whose grants count, or are about to be stored. */
  async #counting(clients: readonly [string, string][]): Promise<[string, string][]> {
    const isOver = await Promise.all(clients.map(([, id]) => this.#isOver(id)))
    return clients.filter((_, index) => !isOver[index])
  }

  async #find(id: string): Promise<ReadRecord<GrantRecord | RemovedGrant> | undefined> {
    return await this.#parts.records.find<GrantRecord | RemovedGrant>(grantKind, id)
  }
}

/** The `sid` of a session for a client: the same at each use, and no client learns another's. */
export function sidOf(sessionId: string, clientId: string): string {
  return hash('sha256', `oidc sid\n${sessionId}\n${clientId}`, 'base64url').slice(0, 22)
}

/**
 * What is asked of a user, or has been allowed: scopes of the issuer, such as `profile`, and those of a resource with
 * its address behind a space, such as `orders:read https://orders.example`. Neither can contain a space.
 */
export type Permission = string

/** The scope of a permission. */
export function scopeOf(permission: Permission): string {
  return permission.split(' ')[0] ?? ''
}

/** The scopes of permissions, each once, as a request names them. */
export function scopesIn(permissions: Iterable<Permission>): string {
  return [...new Set([...permissions].map(scopeOf))].join(' ')
}

/** The permissions that a request asks for, of those that there are. */
export function permissionsIn(
  { scope, resource }: { readonly scope?: unknown; readonly resource?: unknown },
  { scopes, resources }: Offered,
): Set<Permission> {
  const asked = typeof scope === 'string' ? [...new Set(scope.split(' '))] : []
  // Each once, and only those that there are: a request can repeat and make up as many as fit.
  const addresses = [...new Set([resource ?? []].flat().map(String))].filter((address) => resources.has(address))
  return new Set([
    ...asked.filter((each) => scopes.includes(each)),
    ...addresses.flatMap((address) =>
      asked.filter((each) => resources.get(address)?.scopes.includes(each)).map((each) => `${each} ${address}`),
    ),
  ])
}

/** The permissions that are still offered. */
export function stillOffered(permissions: readonly Permission[], { scopes, resources }: Offered): Permission[] {
  return permissions.filter((each) => {
    const [scope = '', address] = each.split(' ')
    return (address === undefined ? scopes : resources.get(address)?.scopes)?.includes(scope) === true
  })
}

/** Permissions as the library writes them in a grant. */
export function grantOf(permissions: readonly Permission[]): {
  readonly openid: { readonly scope: string }
  readonly resources: Readonly<Record<string, string>>
} {
  const byAddress = Map.groupBy(permissions, (each) => each.split(' ')[1] ?? '')
  const scopesAt = (address: string): string => (byAddress.get(address) ?? []).map(scopeOf).join(' ')
  const addresses = [...byAddress.keys()].filter((address) => address !== '')
  return {
    openid: { scope: scopesAt('') },
    resources: Object.fromEntries(addresses.map((address) => [address, scopesAt(address)])),
  }
}
