import { hash } from 'node:crypto'
import type { Adapter, AdapterPayload, errors } from 'oidc-provider'
import { equalInConstantTime } from '../base/token.ts'
import type { ConnectedApps } from '../core/users/connected-apps.ts'
import type { Session } from '../core/users/host.ts'
import type { Store } from '../store/store.ts'
import { type Grants, sidOf } from './grants.ts'
import { requestState } from './request-state.ts'
import { grantOf } from './resources.ts'
import type { SealedRecords } from './sealed-records.ts'

/** What the adapters stand on. */
export interface AdapterParts {
  readonly records: SealedRecords
  readonly grants: Grants
  readonly apps: Pick<ConnectedApps, 'use'>
  readonly store: Pick<Store, 'now'>
  /** The live session with this id, or `undefined`. Read at each call. */
  readonly findSession: (id: string) => Promise<Session | undefined>
  /** The session with offline access that has this id, or `undefined`. Read at each call. */
  readonly findOffline: (id: string) => Promise<object | undefined>
  /** Time in seconds for which a client's used refresh token is taken again. */
  readonly refreshGraceOf: (clientId: string) => number
  /** The library's own errors, which it answers as OAuth says. */
  readonly errors: Pick<typeof errors, 'InvalidGrant' | 'InvalidRequestUri' | 'InvalidRequest'>
}

/** What is stored of an interaction beside the library's payload. */
export interface StoredInteraction {
  readonly payload: AdapterPayload
  /** Hash of the secret of the browser that began it. */
  readonly browser: string
  /** Time at which it began, by the store's clock in epoch milliseconds. */
  readonly startedAt: number
}

/** What is stored of anything else. */
interface StoredPayload {
  readonly payload: AdapterPayload
  readonly usedAt?: number
}

/** Makes the adapter of a model of the library. */
export function adaptersOver(parts: AdapterParts): (name: string) => Adapter {
  return (name) => {
    switch (name) {
      case 'Session':
        return new SessionView(parts)
      case 'Grant':
        return new GrantView(parts)
      case 'Interaction':
        return new InteractionAdapter(parts)
      case 'Client':
        // The library has the clients of the file from its configuration, and there are no others.
        return new NoClients()
      default:
        return new RecordAdapter(name, parts)
    }
  }
}

/** What no model needs: codes for devices, and lists of a grant's tokens, which end with the grant itself. */
abstract class BaseAdapter implements Adapter {
  abstract find(id: string): Promise<AdapterPayload | undefined>
  abstract upsert(id: string, payload: AdapterPayload, expiresIn: number): Promise<undefined>
  abstract destroy(id: string): Promise<undefined>

  async consume(_id: string): Promise<undefined> {
    throw new TypeError('this model is not used up')
  }

  async findByUid(_uid: string): Promise<AdapterPayload | undefined> {
    return undefined
  }

  async findByUserCode(_userCode: string): Promise<AdapterPayload | undefined> {
    return undefined
  }

  async revokeByGrantId(_grantId: string): Promise<undefined> {}
}

/** Codes, refresh tokens, opaque access tokens, pushed requests, and marks of proofs that count once. */
class RecordAdapter extends BaseAdapter {
  readonly #name: string
  readonly #parts: AdapterParts

  constructor(name: string, parts: AdapterParts) {
    super()
    this.#name = name
    this.#parts = parts
  }

  async find(id: string): Promise<AdapterPayload | undefined> {
    const found = await this.#parts.records.find<StoredPayload>(this.#name, id)
    if (found === undefined) return undefined
    const { payload, usedAt } = found.record
    const { sessionUid, expiresWithSession } = payload
    // What is bound to a session is checked by the library. The rest counts while the session has offline access.
    const isFree = sessionUid !== undefined && expiresWithSession !== true
    if (isFree && (await this.#parts.findOffline(sessionUid)) === undefined) return undefined
    const isUsed = usedAt !== undefined && !this.#isInGrace(payload, usedAt)
    if (isUsed) this.#noteReplay(payload)
    return { ...payload, jti: id, ...(isUsed ? { consumed: usedAt } : {}) }
  }

  /** Each is stored once, under an id of its own. */
  async upsert(id: string, { jti: _jti, ...payload }: AdapterPayload, expiresIn: number): Promise<undefined> {
    const record: StoredPayload = { payload }
    const life = { ttlMs: Math.max(1, expiresIn) * 1000 }
    if (await this.#parts.records.create({ kind: this.#name, id, record, life })) return
    // Of ids that the library makes, none comes twice: this is a proof or an assertion, sent by two requests at once.
    throw new this.#parts.errors.InvalidRequest('the proof was already used')
  }

  async destroy(id: string): Promise<undefined> {
    await this.#parts.records.remove(this.#name, id)
  }

  /**
   * Marks it as used. Of any number of callers exactly one succeeds. The others are a sign of theft, or of a client that
   * cannot tell what it has sent: the grant ends, and with it all that the first caller got.
   */
  override async consume(id: string): Promise<undefined> {
    const { records, grants, apps, store, errors } = this.#parts
    const found = await records.find<StoredPayload>(this.#name, id)
    if (found !== undefined && found.record.usedAt === undefined) {
      const now = store.now()
      const { payload } = found.record
      const grant = payload.grantId === undefined ? undefined : await grants.read(payload.grantId)
      const state = requestState.getStore()
      if (state !== undefined && grant !== undefined) state.usedUp = { grantId: String(payload.grantId), grant }
      const leftMs = (payload.exp ?? 0) * 1000 - now
      const kept = this.#graceOf(payload) > 0 ? payload : usedUp(payload)
      const used: StoredPayload = { payload: kept, usedAt: Math.floor(now / 1000) }
      const life = { ttlMs: Math.max(1, Math.min(leftMs, maxUsedMs)) }
      if (await records.replace(found, { kind: this.#name, id, record: used, life })) {
        if (grant !== undefined) await apps.use(grant.accountId, grant.clientId)
        return
      }
    }
    const usedAt = found?.record.usedAt
    if (usedAt !== undefined && this.#isInGrace(found?.record.payload, usedAt)) return
    if (this.#name === 'PushedAuthorizationRequest') {
      throw new errors.InvalidRequestUri('request_uri is invalid, expired, or was already used')
    }
    if (found !== undefined) this.#noteReplay(found.record.payload)
    const grantId = found?.record.payload.grantId
    if (grantId !== undefined) await grants.remove(grantId)
    throw new errors.InvalidGrant(`${this.#name} was already used`)
  }

  #noteReplay({ accountId, clientId }: AdapterPayload): void {
    const state = requestState.getStore()
    if (state === undefined || accountId === undefined || clientId === undefined) return
    const what = this.#name === 'RefreshToken' ? 'refresh token' : 'code'
    state.replayed = { userId: accountId, clientId, what }
  }

  #graceOf({ clientId }: AdapterPayload): number {
    return this.#name === 'RefreshToken' ? this.#parts.refreshGraceOf(String(clientId)) : 0
  }

  /** Whether a client may use what is used up once more, because an answer may have been lost. */
  #isInGrace(payload: AdapterPayload = {}, usedAt: number): boolean {
    return this.#parts.store.now() / 1000 < usedAt + this.#graceOf(payload)
  }
}

/** Longest time in ms for which a used refresh token is remembered: its whole life. */
const maxUsedMs = 14 * 86_400_000

/** What has to be kept of something used: enough to recognise it, and to end its grant. */
function usedUp(payload: AdapterPayload): AdapterPayload {
  if (payload.kind !== 'RefreshToken') return payload
  const { kind, iat, iiat, exp, accountId, clientId, grantId, scope, sessionUid, expiresWithSession } = payload
  const kept = { kind, iat, iiat, exp, accountId, clientId, grantId, scope, sessionUid, expiresWithSession }
  return JSON.parse(JSON.stringify(kept))
}

/** The library's session, which is a view of ours: nothing of it is stored. */
class SessionView extends BaseAdapter {
  readonly #parts: AdapterParts

  constructor(parts: AdapterParts) {
    super()
    this.#parts = parts
  }

  async find(id: string): Promise<AdapterPayload | undefined> {
    const session = await this.#parts.findSession(id)
    if (session === undefined) return undefined
    const grants = Object.entries(await this.#parts.grants.idsOf(id))
    return {
      kind: 'Session',
      jti: id,
      uid: id,
      accountId: session.userId,
      loginTs: Math.floor(session.createdAt / 1000),
      amr: ['swk'],
      iat: Math.floor(session.createdAt / 1000),
      exp: Math.ceil(session.expiresAt / 1000),
      authorizations: Object.fromEntries(
        grants.map(([clientId, grantId]) => [clientId, { sid: sidOf(id, clientId), grantId }]),
      ),
    }
  }

  override async findByUid(uid: string): Promise<AdapterPayload | undefined> {
    return await this.find(uid)
  }

  async upsert(): Promise<undefined> {}

  /** The library replaces a session's id by destroying it. Ours ends by sign-out. */
  async destroy(): Promise<undefined> {}
}

/** Grants, which only our own consent makes. */
class GrantView extends BaseAdapter {
  readonly #parts: AdapterParts

  constructor(parts: AdapterParts) {
    super()
    this.#parts = parts
  }

  async find(id: string): Promise<AdapterPayload | undefined> {
    const found = await this.#parts.grants.read(id)
    if (found === undefined) return undefined
    const { accountId, clientId, iat, exp, allowed } = found
    return { kind: 'Grant', jti: id, accountId, clientId, iat, exp, ...grantOf(allowed) }
  }

  async upsert(): Promise<undefined> {
    throw new TypeError('grants are made by consent only')
  }

  async destroy(id: string): Promise<undefined> {
    await this.#parts.grants.remove(id)
  }
}

/** Interactions, each of which is found by the browser that began it and by no other. */
class InteractionAdapter extends BaseAdapter {
  readonly #parts: AdapterParts

  constructor(parts: AdapterParts) {
    super()
    this.#parts = parts
  }

  async find(id: string): Promise<AdapterPayload | undefined> {
    const found = await this.#parts.records.find<StoredInteraction>('Interaction', id)
    if (found === undefined || !isOfBrowser(found.record)) return undefined
    return { ...found.record.payload, jti: id }
  }

  async upsert(id: string, { jti: _jti, ...payload }: AdapterPayload, expiresIn: number): Promise<undefined> {
    const { records, store } = this.#parts
    const [browser] = browserHashes()
    if (browser === undefined) throw new TypeError('an interaction needs a browser')
    const life = { ttlMs: Math.max(1, expiresIn) * 1000 }
    const found = await records.find<StoredInteraction>('Interaction', id)
    const startedAt = found?.record.startedAt ?? store.now()
    const record: StoredInteraction = { payload, browser: found?.record.browser ?? browser, startedAt }
    const next = { kind: 'Interaction', id, record, life }
    const stored =
      found === undefined
        ? await records.create(next)
        : isOfBrowser(found.record) && (await records.replace(found, next))
    if (!stored) throw new this.#parts.errors.InvalidRequest('the interaction has changed meanwhile')
  }

  async destroy(id: string): Promise<undefined> {
    await this.#parts.records.remove('Interaction', id)
  }
}

/** Whether the browser whose request is served began an interaction. */
export function isOfBrowser({ browser }: Pick<StoredInteraction, 'browser'>): boolean {
  return browserHashes().some((each) => equalInConstantTime(each, browser))
}

/** Hashes of the secrets of the browser whose request is served. */
function browserHashes(): string[] {
  return (requestState.getStore()?.browserSecrets ?? []).map((secret) => hash('sha256', secret, 'base64url'))
}

class NoClients extends BaseAdapter {
  async find(): Promise<undefined> {}

  async upsert(): Promise<undefined> {
    throw new TypeError('clients are in the clients file only')
  }

  async destroy(): Promise<undefined> {}
}
