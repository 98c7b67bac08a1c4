import type { Adapter, AdapterPayload, KoaContextWithOIDC } from 'oidc-provider'
import { browsersOf, interactionSeconds, isOfBrowser } from './browser-cookies.ts'
import { DocumentInvalid, DocumentNotFetched } from './client-documents.ts'
import { DeviceCodes } from './device-codes.ts'
import { DocumentUnavailable } from './document-fetches.ts'
import { type Grants, grantOf, sidOf, stillOffered } from './grants.ts'
import type { IssuerParts, Loaded } from './issuer-parts.ts'
import { requestState } from './library-request.ts'
import { type GrantableParts, leaveOutUnknown, requireGrantable } from './resources.ts'
import type { SealedRecords } from './sealed-records.ts'
import type { SessionClients } from './session-ends.ts'

/** Stored interaction: the library's payload, and the browser that began it. */
export interface StoredInteraction {
  readonly payload: AdapterPayload
  /** Hashes of secrets of the browser that began it. Any of them is enough to recognise it. */
  readonly browsers: readonly string[]
  /** Time at which it began, by the store's clock in epoch milliseconds. */
  readonly startedAt: number
}

/** Stored record of any other model. */
interface StoredPayload {
  readonly payload: AdapterPayload
  /** When it was used, in seconds, to the millisecond. */
  readonly usedAt?: number
}

/** Clients, what there is for them, and who may use them. */
type LoadedClients = Pick<Loaded, 'clients' | 'scopes' | 'resources' | 'people'>

export interface AdapterParts extends GrantableParts, Pick<IssuerParts, 'store' | 'audit'> {
  readonly records: SealedRecords
  readonly grants: Grants
  readonly sessionClients: SessionClients
}

/**
 * What a model does that has nothing else. None needs lists of a grant's tokens, which end with the grant itself, and
 * the page for codes of devices is ours.
 */
const nothing: Adapter = {
  async find() {},
  async findByUid() {},
  async findByUserCode() {},
  async upsert() {
    throw new TypeError('the library does not make records of this model')
  },
  async consume() {
    throw new TypeError('this model is not used up')
  },
  async destroy() {},
  async revokeByGrantId() {},
}

/** Makes the adapter of a model of the library. */
export function adaptersOver(parts: AdapterParts, loaded: LoadedClients): (name: string) => Adapter {
  const own: Readonly<Record<string, Partial<Adapter>>> = {
    Session: sessionView(parts),
    Grant: grantView(parts, loaded),
    Interaction: interactions(parts),
    DeviceCode: deviceCodes(parts, loaded),
    Client: documentClients(parts),
  }
  return (name) => ({ ...nothing, ...(own[name] ?? usedOnce(name, parts, loaded)) })
}

/**
 * Clients that come with a metadata document. The library has those of the file from its configuration, and fetches no
 * document by itself.
 */
function documentClients({ directory, library }: AdapterParts): Partial<Adapter> {
  const { InvalidClientMetadata, LoginRequired, TemporarilyUnavailable } = library.errors
  return {
    async find(id) {
      const { request, isAnonymous } = requestState.getStore() ?? {}
      const use = { request, route: library.Provider.ctx?.oidc?.route, mayFetch: isAnonymous !== true }
      try {
        return (await directory.find(id, use))?.metadata as AdapterPayload | undefined
      } catch (thrown) {
        if (thrown instanceof DocumentNotFetched) throw new LoginRequired(thrown.message)
        if (thrown instanceof DocumentInvalid) throw new InvalidClientMetadata(`client document: ${thrown.message}`)
        if (!(thrown instanceof DocumentUnavailable)) throw thrown
        // Why is for the log alone: it can say what the service's own name servers answer.
        const text = 'the metadata document of the client cannot be fetched; try again in a minute'
        throw Object.assign(new TemporarilyUnavailable(text, { cause: thrown }), { status: 503, statusCode: 503 })
      }
    },
  }
}

/** Codes, refresh tokens, opaque access tokens, pushed requests, and marks of proofs that count once. */
function usedOnce(kind: string, parts: AdapterParts, loaded: LoadedClients): Partial<Adapter> {
  const { records, grants, store, directory } = parts
  const { InvalidGrant, InvalidRequest, InvalidRequestUri } = parts.library.errors

  const graceOf = ({ clientId }: AdapterPayload): number =>
    kind === 'RefreshToken' ? (directory.seen(String(clientId))?.refreshGraceSeconds ?? 0) : 0

  /** Whether a client may use what is used up once more, because an answer may have been lost. */
  const isInGrace = (payload: AdapterPayload, usedAt: number): boolean => {
    const graceSeconds = graceOf(payload)
    // Without one, the clock of an instance that is behind says nothing.
    return graceSeconds > 0 && store.now() / 1000 < usedAt + graceSeconds
  }

  return {
    async find(id) {
      const found = await records.find<StoredPayload>(kind, id)
      if (found === undefined) {
        // If it is gone when an interaction is answered, the library would answer as if none had been pushed.
        if (kind === pushedRequest) throw new InvalidRequestUri(usedRequestText)
        return undefined
      }
      const { payload, usedAt } = found.record
      if (!(await isHeld(payload, parts))) return undefined
      const oidc = contextOf(parts)?.oidc
      if (kind === 'RefreshToken' && oidc?.route === 'token') {
        leaveOutUnknown(oidc, payload, directory.offeredTo(String(payload.clientId), loaded))
      }
      const isUsed = usedAt !== undefined && !isInGrace(payload, usedAt)
      return { ...payload, jti: id, ...(isUsed ? { consumed: Math.floor(usedAt) } : {}) }
    },

    /** Each is stored once, under an id of its own. */
    async upsert(id, { jti: _jti, ...payload }, expiresIn = 0) {
      const record: StoredPayload = { payload }
      // A pushed request counts until the last interaction that it began may be answered: a sign-in, then consent.
      const lifeSeconds = kind === pushedRequest ? expiresIn + 2 * interactionSeconds : expiresIn
      if (await records.create({ kind, id, record, life: lifeOf(lifeSeconds * 1000) })) return
      // Of ids that the library makes, none comes twice: this is a proof or an assertion, sent by two requests at once.
      throw new InvalidRequest('the proof was already used')
    },

    async destroy(id) {
      await records.remove(kind, id)
    },

    /**
     * Marks a record as used. Exactly one caller succeeds; within the client's grace time, the others do, too. Further
     * calls are a sign of theft, or of a client that has lost track of what it sent: the grant ends, and with it all
     * that the first caller got.
     */
    async consume(id) {
      for (;;) {
        const found = await records.find<StoredPayload>(kind, id)
        const { payload, usedAt } = found?.record ?? { payload: {} }
        const { grantId } = payload
        const isUsable = usedAt === undefined || isInGrace(payload, usedAt)
        if (found !== undefined && isUsable) await requireRequest(payload, parts, loaded)
        if (found !== undefined && usedAt === undefined) {
          const now = store.now()
          // Read first: if the store fails here, the code or token has not been used.
          const grant = await grants.read(grantId)
          const kept = graceOf(payload) > 0 ? payload : usedUp(payload)
          const record: StoredPayload = { payload: kept, usedAt: now / 1000 }
          const life = lifeOf(Math.min((payload.exp ?? 0) * 1000 - now, maxUsedMs))
          // Another caller was faster: judge by what it has stored.
          if (!(await records.replace(found, { kind, id, record, life }))) continue
          await grants.use(grant)
          return
        }
        if (found !== undefined && isUsable) return
        if (kind === pushedRequest) throw new InvalidRequestUri(usedRequestText)
        if (grantId !== undefined) await removeGrant(parts, grantId)
        throw new InvalidGrant(`${kind} was already used`)
      }
    },
  }
}

/** The library's context of the request that it is serving. */
function contextOf({ library }: AdapterParts): KoaContextWithOIDC | undefined {
  return requestState.getStore() && library.Provider.ctx
}

/** Checks what a request for tokens asks for, before what it came with is used. */
async function requireRequest(payload: AdapterPayload, parts: AdapterParts, loaded: LoadedClients): Promise<void> {
  const ctx = contextOf(parts)
  if (ctx?.oidc.route === 'token') await requireGrantable(ctx, payload, loaded, parts)
}

/**
 * Whether what was issued still has what it goes by. The library checks what is bound to a session. The rest counts
 * while the session has offline access, and its user may sign in.
 */
async function isHeld(payload: AdapterPayload, parts: AdapterParts): Promise<boolean> {
  const { accountId, clientId, sessionUid, expiresWithSession } = payload
  if (sessionUid === undefined || expiresWithSession === true) return true
  const session = await parts.apps.findOffline(String(accountId), String(clientId), sessionUid)
  return session !== undefined && parts.host.admits(session)
}

/**
 * Codes of devices. A device that polls too often, or twice at once, is slowed down; a used code is gone, and a second
 * use ends nothing: it is a poll that was on its way.
 */
function deviceCodes(parts: AdapterParts, loaded: LoadedClients): Partial<Adapter> {
  const { InvalidGrant, SlowDown } = parts.library.errors
  const codes = new DeviceCodes(parts)
  return {
    async find(id) {
      const payload = await codes.poll(id)
      if (payload === 'too early') throw new SlowDown()
      return payload !== undefined && (await isHeld(payload, parts)) ? { ...payload, jti: id } : undefined
    },
    async upsert(id, { jti: _jti, ...payload }) {
      if (!(await codes.add(id, payload))) throw new InvalidGrant('the code is that of another device; try again')
    },
    async consume(id) {
      const found = await codes.find(id)
      if (found?.accountId !== undefined) await requireRequest(found, parts, loaded)
      const payload = await codes.take(id)
      if (payload === undefined) throw new InvalidGrant('the device code was already used')
      await parts.grants.use(await parts.grants.read(payload.grantId))
    },
  }
}

const pushedRequest = 'PushedAuthorizationRequest'
const usedRequestText = 'request_uri is invalid, expired, or was already used'

function lifeOf(ms: number): { readonly ttlMs: number } {
  // A client's assertion ends at any fraction of a second.
  return { ttlMs: Math.max(1, Math.ceil(ms)) }
}

/** Longest time in ms for which a used refresh token is remembered: its life. */
const maxUsedMs = 14 * 86_400_000

/** What has to be kept of something used: enough to recognise it, and to end its grant. */
function usedUp(payload: AdapterPayload): AdapterPayload {
  if (payload.kind !== 'RefreshToken') return payload
  const { kind, iat, iiat, exp, accountId, clientId, grantId, scope, sessionUid, expiresWithSession } = payload
  const kept = { kind, iat, iiat, exp, accountId, clientId, grantId, scope, sessionUid, expiresWithSession }
  return JSON.parse(JSON.stringify(kept))
}

/**
 * The library's session, which is a view of ours: nothing of it is stored. The library replaces a session's id by
 * destroying it; ours ends by sign-out.
 */
function sessionView({ host, sessionClients }: AdapterParts): Partial<Adapter> {
  const find = async (id: string): Promise<AdapterPayload | undefined> => {
    const session = await host.findSession(id)
    if (session === undefined) return undefined
    const { userId, createdAt, expiresAt } = session
    const beganAt = Math.floor(createdAt / 1000)
    const authorizations = [...(await sessionClients.of(id))].map(
      ([clientId, grantId]) => [clientId, { sid: sidOf(id, clientId), grantId }] as const,
    )
    return {
      kind: 'Session',
      jti: id,
      uid: id,
      accountId: userId,
      loginTs: beganAt,
      amr: ['swk'],
      iat: beganAt,
      exp: Math.ceil(expiresAt / 1000),
      authorizations: Object.fromEntries(authorizations),
    }
  }
  return {
    find,
    findByUid: find,
    async upsert() {},
  }
}

/** Grants, which only our own consent makes. They give what the clients file still lets the client ask for. */
function grantView(parts: AdapterParts, { clients: _, ...offered }: LoadedClients): Partial<Adapter> {
  const { grants, directory } = parts
  return {
    async find(id) {
      const found = await grants.read(id)
      const its = found && directory.offeredTo(found.clientId, offered)
      if (found === undefined || its === undefined) return undefined
      const { accountId, clientId, iat, exp, allowed } = found
      const given = stillOffered(allowed, its)
      return { kind: 'Grant', jti: id, accountId, clientId, iat, exp, ...grantOf(given) }
    },
    async destroy(id) {
      await removeGrant(parts, id)
    },
  }
}

/** Removes a grant. At the token endpoint, this is done because a code or refresh token came a second time. */
async function removeGrant({ grants, audit, library }: AdapterParts, id: string): Promise<void> {
  const grant = await grants.remove(id)
  const request = requestState.getStore()?.request
  if (grant === undefined || request === undefined) return
  const { route, params } = library.Provider.ctx?.oidc ?? {}
  if (route !== 'token') return
  const what = params?.grant_type === 'refresh_token' ? 'refresh token' : 'code'
  audit.record({ type: 'app.token_replayed', userId: grant.accountId, clientId: grant.clientId, what }, request)
}

/** Interactions, each of which is found by the browser that began it and by no other, and goes on once. */
function interactions(parts: AdapterParts): Partial<Adapter> {
  const { records, store, library } = parts
  const kind = 'Interaction'
  const secrets = (): readonly string[] => requestState.getStore()?.browserSecrets ?? []
  return {
    async find(id) {
      const found = await records.find<StoredInteraction>(kind, id)
      if (found === undefined || !isOfBrowser(found.record, secrets())) return undefined
      return { ...found.record.payload, jti: id }
    },
    async upsert(id, { jti: _jti, ...payload }, expiresIn = 0) {
      const found = await records.find<StoredInteraction>(kind, id)
      const begun = found?.record ?? { browsers: browsersOf(secrets()), startedAt: store.now() }
      if (!isOfBrowser(begun, secrets())) throw new TypeError('an interaction needs its browser')
      const record: StoredInteraction = { ...begun, payload }
      if (await records.put(found, { kind, id, record, life: lifeOf(expiresIn * 1000) })) return
      throw new library.errors.InvalidRequest('the interaction has changed meanwhile')
    },
    async destroy(id) {
      if (!(await records.remove(kind, id))) throw new library.errors.SessionNotFound('interaction session not found')
    },
  }
}
