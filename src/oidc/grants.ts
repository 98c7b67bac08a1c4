import { hash } from 'node:crypto'
import { randomText } from '../base/token.ts'
import type { ConnectedApp, ConnectedApps } from '../core/users/connected-apps.ts'
import type { Session } from '../core/users/host.ts'
import type { OfflineAccess } from '../core/users/offline-access.ts'
import type { SessionClients } from '../core/users/session-clients.ts'
import type { Store } from '../store/store.ts'
import type { Permission } from './resources.ts'
import type { SealedRecords } from './sealed-records.ts'

/** A grant, with the session that it belongs to. */
export interface GrantRecord {
  readonly accountId: string
  readonly clientId: string
  readonly sessionId: string
  readonly iat: number
  readonly exp: number
  readonly allowed: readonly Permission[]
  /** The user's connection of the application under which it was given: see {@link ConnectedApps}. */
  readonly connection: string
}

/** What takes the place of a grant that was taken away. */
interface RemovedGrant {
  readonly removed: true
}

/** What is stored of a session: its grants, by client. */
interface SessionGrants {
  readonly grants: Readonly<Record<string, string>>
}

const sessionKind = 'session-grants'
const grantKind = 'Grant'

/** What {@link Grants} stand on. */
export interface GrantParts {
  readonly records: SealedRecords
  readonly store: Pick<Store, 'now'>
  readonly apps: ConnectedApps
  /** Sessions whose grants outlive them. */
  readonly offline: OfflineAccess
  /** Where sessions are signed in. */
  readonly sessionClients: Pick<SessionClients, 'add'>
  /** Reads whether a session is live now. */
  readonly isLive: (session: Session) => Promise<boolean>
  /** Longest life of a session in seconds, for which its grants are kept. */
  readonly sessionSeconds: number
}

/** A grant and its id. */
export interface FoundGrant {
  readonly id: string
  readonly record: GrantRecord
}

/**
 * The grants of sessions: one for each session and client, so that two tabs of a client share it. Its random id stands
 * in the session's list, which changes by compare-and-set, before the grant is stored. All that is issued under a grant
 * counts only while the grant is there, so taking it away ends codes, refresh tokens and opaque access tokens in one
 * step. A mark takes its place: the next grant has another id, and nothing in flight brings the old one back.
 */
export class Grants {
  readonly #parts: GrantParts
  readonly #records: SealedRecords
  readonly #life: { readonly ttlMs: number }
  readonly #offlineLife: { readonly ttlMs: number }

  constructor(parts: GrantParts) {
    this.#parts = parts
    this.#records = parts.records
    this.#life = { ttlMs: parts.sessionSeconds * 1000 }
    this.#offlineLife = { ttlMs: parts.offline.lifeMs }
  }

  /** The grant of a session for a client, or `undefined`. */
  async of(session: Session, clientId: string): Promise<FoundGrant | undefined> {
    const id = await this.idOf(session.id, clientId)
    const found = id === undefined ? undefined : await this.read(id)
    return found?.clientId === clientId && found.sessionId === session.id
      ? { id: id as string, record: found }
      : undefined
  }

  /** The id that a session's list has for a client. The grant itself may be gone. */
  async idOf(sessionId: string, clientId: string): Promise<string | undefined> {
    const { grants } = (await this.#records.find<SessionGrants>(sessionKind, sessionId))?.record ?? noGrants
    return Object.hasOwn(grants, clientId) ? grants[clientId] : undefined
  }

  /** All ids that a session's list has, by client. */
  async idsOf(sessionId: string): Promise<Readonly<Record<string, string>>> {
    return ((await this.#records.find<SessionGrants>(sessionKind, sessionId))?.record ?? noGrants).grants
  }

  async read(id: string): Promise<GrantRecord | undefined> {
    const record = (await this.#records.find<GrantRecord | RemovedGrant>(grantKind, id))?.record
    if (record === undefined || 'removed' in record || record.exp * 1000 <= this.#parts.store.now()) return undefined
    const app = await this.#parts.apps.find(record.accountId, record.clientId)
    return app?.connection === record.connection ? record : undefined
  }

  /**
   * Adds permissions to the grant of a session for a client, made if there is none, and connects the application.
   * Resolves with its id, or with `undefined` if the session ended meanwhile: then the grant is gone, too.
   */
  async give(session: Session, clientId: string, asked: ReadonlySet<Permission>): Promise<string | undefined> {
    const { apps, offline, sessionClients } = this.#parts
    await sessionClients.add(session.id, clientId, this.#life)
    for (;;) {
      const app = await apps.connect(session.userId, clientId, asked)
      const id = await this.#idFor(session, clientId)
      const found = await this.#records.find<GrantRecord | RemovedGrant>(grantKind, id)
      if (found !== undefined && 'removed' in found.record) continue
      const before = found?.record as GrantRecord | undefined
      // What was given under a connection that has ended counts no more.
      const former = before?.connection === app.connection ? before.allowed : []
      const all = new Set([...former, ...asked])
      const record = this.#recordOf(session, clientId, app, [...all])
      // Offline access begins anew with each consent, and its grant with it.
      const isKept = all.size === former.length && !isOffline(record)
      const life = this.#lifeOf(record)
      // Otherwise another tab was faster, or the grant was taken away.
      if (!isKept && !(await this.#records.put(found, { kind: grantKind, id, record, life }))) continue
      if (isOffline(record)) await offline.keep(session)
      // After the grant is stored: who ends the session finds the grant in its list, or is seen here.
      if (await this.#parts.isLive(session)) return id
      await this.remove(id)
      await offline.end(session.userId, session.id)
      return undefined
    }
  }

  /** Takes a grant away, with all that was issued under it. Resolves with whether there was one. */
  async remove(id: string): Promise<boolean> {
    const mark: RemovedGrant = { removed: true }
    for (;;) {
      const found = await this.#records.find<GrantRecord | RemovedGrant>(grantKind, id)
      if (found !== undefined && 'removed' in found.record) return false
      const marked = await this.#records.put(found, { kind: grantKind, id, record: mark, life: this.#offlineLife })
      if (marked) return found !== undefined
    }
  }

  /**
   * The id of the grant of a session for a client, which stands in the session's list from then on: that of the list,
   * unless its grant was taken away. An id without a grant is of another tab, which is about to store it.
   */
  async #idFor({ id: sessionId }: Session, clientId: string): Promise<string> {
    for (;;) {
      const found = await this.#records.find<SessionGrants>(sessionKind, sessionId)
      const grants = found?.record.grants ?? {}
      const known = Object.hasOwn(grants, clientId) ? grants[clientId] : undefined
      if (known !== undefined && !(await this.#wasRemoved(known))) return known
      const id = randomText(32)
      const record: SessionGrants = { grants: { ...grants, [clientId]: id } }
      const stored = await this.#records.put(found, {
        kind: sessionKind,
        id: sessionId,
        record,
        life: this.#offlineLife,
      })
      if (stored) return id
    }
  }

  async #wasRemoved(id: string): Promise<boolean> {
    const found = await this.#records.find<GrantRecord | RemovedGrant>(grantKind, id)
    return found !== undefined && 'removed' in found.record
  }

  #recordOf(
    { id: sessionId, userId: accountId }: Session,
    clientId: string,
    { connection }: ConnectedApp,
    allowed: readonly Permission[],
  ): GrantRecord {
    const now = Math.floor(this.#parts.store.now() / 1000)
    const record = { accountId, clientId, sessionId, iat: now, allowed, connection }
    return { ...record, exp: now + this.#lifeOf(record).ttlMs / 1000 }
  }

  #lifeOf(record: Pick<GrantRecord, 'allowed'>): { readonly ttlMs: number } {
    return isOffline(record) ? this.#offlineLife : this.#life
  }
}

/** Whether a grant outlives its session. */
function isOffline({ allowed }: Pick<GrantRecord, 'allowed'>): boolean {
  return allowed.includes('offline_access')
}

const noGrants: SessionGrants = { grants: {} }

/** The `sid` of a session for a client: the same at each use, and no client learns another's. */
export function sidOf(sessionId: string, clientId: string): string {
  return hash('sha256', `oidc sid\n${sessionId}\n${clientId}`, 'base64url').slice(0, 22)
}
