import type { AdapterPayload } from 'oidc-provider'
import type { RequestContext } from '../base/request.ts'
import type { Session } from '../core/users/host.ts'
import { CountersignError } from '../shared/errors.ts'
import type { ShownClient } from '../shared/page-values.ts'
import type { StoredInteraction } from './adapter.ts'
import { changed, readTicket, signTicket } from './answers.ts'
import { type BrowserCookie, browsersOf, isOfBrowser, mostCookies } from './browser-cookies.ts'
import type { ClientDirectory } from './client-directory.ts'
import { DocumentInvalid, documentHostOf } from './client-documents.ts'
import { type FileClient, isWeb, mayUse, offeredTo, shownClient, wordsOf } from './clients.ts'
import { GrantsFull } from './connected-apps.ts'
import { DocumentUnavailable } from './document-fetches.ts'
import { type Grants, type Permission, permissionsIn } from './grants.ts'
import type { IssuerParts, Loaded } from './issuer-parts.ts'
import type { LibraryAnswer } from './library-request.ts'
import { leadTo, type ShowPage, signInAddress } from './pages.ts'
import type { OwnResult } from './policy.ts'
import type { ReadRecord, SealedRecords } from './sealed-records.ts'

/** Request of a step. */
export interface StepRequest {
  readonly uid: string
  /** Path of the interaction. */
  readonly path: string
  /** Whether the user has just come back from the sign-in page. */
  readonly isBack: boolean
  readonly session: Session | undefined
  /** The cookies by which it recognises its browser, the oldest first. */
  readonly cookies: readonly BrowserCookie[]
  readonly request: RequestContext
}

/** Answer of a step, and a cookie that the browser no longer needs. */
type StepAnswer = LibraryAnswer & { readonly forgotten?: BrowserCookie | undefined }

/** Where the browser goes after a decision. */
interface Decided {
  readonly redirectTo: string
  /** Whether the answer opens an application on the device, which leaves the page where it is. */
  readonly opensApplication: boolean
}

/** A client's request to sign out, which the library has checked. */
interface LogoutRequest {
  readonly clientId: string | undefined
  /** Where it leads then. */
  readonly redirectTo: string | undefined
}

/** A user's answer to the page of consent, which has not been checked. */
interface Decision extends Pick<StepRequest, 'session' | 'cookies' | 'request'> {
  readonly input: unknown
}

interface InteractionParts extends Pick<IssuerParts, 'settings' | 'store' | 'keyring' | 'host'> {
  readonly records: SealedRecords
  readonly directory: ClientDirectory
  readonly grants: Grants
  readonly page: ShowPage
  readonly loaded: () => Loaded
}

/**
 * Serves the browser that began an interaction: it goes to the sign-in page, or to the page of consent, and then back
 * into the library.
 */
export class Interactions {
  readonly #parts: InteractionParts

  constructor(parts: InteractionParts) {
    this.#parts = parts
  }

  /** Shows what the user has to do next, or goes on. */
  async show(step: StepRequest): Promise<StepAnswer> {
    const { uid, cookies } = step
    const found = await this.#read(uid, cookies)
    if (found === undefined) return this.#gone()
    const forgotten = await this.#joinTabs(uid, found, cookies)
    // What was read has changed.
    const current = forgotten === undefined ? found : await this.#read(uid, cookies)
    return current === undefined ? this.#gone() : { ...(await this.#next(step, current)), forgotten }
  }

  async #next(
    { uid, path, isBack, session, request }: StepRequest,
    found: ReadRecord<StoredInteraction>,
  ): Promise<LibraryAnswer> {
    const { payload } = found.record
    const { name, reasons } = promptOf(payload)
    if (session === undefined) return this.#toSignIn(path, payload, false)
    if (name === 'membership' || name === 'consent') {
      const client = await this.#clientOf(payload, request)
      if (client === 'away') {
        const unreachable = documentHostOf(payload.params?.client_id)
        return this.#parts.page(503, { kind: 'error', error: 'temporarily_unavailable', unreachable })
      }
      if (client === undefined) return this.#gone()
      const signIn = this.#signInAddress(path, payload.params?.ui_locales, { again: '1' })
      const shown = { client: shownClient(client.metadata), sessionId: session.id, signIn }
      // The files may have changed since the library began to ask.
      if (!this.#mayUse(client, session)) {
        const wallet = `${session.adapterId}:${session.address}`
        return this.#parts.page(403, { kind: 'not-for-account', ...shown, wallet })
      }
      const question = this.#questionOf(payload, client)
      // The library refuses a request that asks for nothing any more.
      if (name === 'membership' || question.scopes.length === 0) {
        return leadTo(await this.#finish(uid, found, resultOf(payload)))
      }
      return this.#parts.page(200, { kind: 'consent', ...shown, ...question, wallet: walletOf(session) })
    }
    const isFresh = isNewSince(found.record, session)
    const needsFresh = reasons.includes('stale_session') || (payload.session?.uid !== undefined && !isBack)
    if (!isFresh && needsFresh) return this.#toSignIn(path, payload, true)
    const confirmed = { sessionId: session.id, isFresh }
    return leadTo(await this.#finish(uid, found, { ...resultOf(payload), confirmed }))
  }

  /**
   * Moves an interaction that began with a cookie of its own to the oldest cookies, if the browser has many, because it
   * opened tabs at once. Resolves with the cookie that is not needed then.
   */
  async #joinTabs(
    uid: string,
    found: ReadRecord<StoredInteraction>,
    cookies: readonly BrowserCookie[],
  ): Promise<BrowserCookie | undefined> {
    const own = cookies.slice(mostCookies).find(({ secret }) => isOfBrowser(found.record, [secret]))
    if (own === undefined || found.record.browsers.length > 1) return undefined
    const record: StoredInteraction = { ...found.record, browsers: browsersOf(cookies.map(({ secret }) => secret)) }
    return (await this.#replace(uid, found, record)) ? own : undefined
  }

  /** Takes the user's answer to the page of consent. */
  async decide(uid: string, { session, input, request, cookies }: Decision): Promise<Decided> {
    const { allow, sessionId, scopes: shown } = input as { allow?: unknown; sessionId?: unknown; scopes?: unknown }
    const found = await this.#read(uid, cookies)
    if (found === undefined) throw gone()
    const { name } = promptOf(found.record.payload)
    // From the page that an application is not for the account, there is a way back.
    if (name !== 'consent' && !(name === 'membership' && allow === false)) throw gone()
    if (session === undefined || session.id !== sessionId) throw changed()
    const { payload } = found.record
    const { redirect_uri: redirectUri, response_mode: mode } = payload.params ?? {}
    const isWebAddress = /^https?:/i.test(String(redirectUri))
    const finish = async (result: OwnResult): Promise<Decided> => ({
      redirectTo: await this.#finish(uid, found, result),
      opensApplication: !isWebAddress && mode !== 'form_post',
    })
    if (allow !== true) return await finish({ error: 'access_denied', error_description: 'the user declined' })
    const client = await this.#clientOf(payload, request)
    if (client === undefined) throw gone()
    if (client === 'away' || !this.#mayUse(client, session)) throw changed()
    const { client_id: clientId } = client.metadata
    const asked = this.#asked(payload, client)
    const grantId = await this.#parts.grants.allow(session, { clientId, asked, shown, isAllowed: true, request })
    if (grantId === undefined) throw changed()
    if (grantId instanceof GrantsFull) {
      return await finish({ error: 'access_denied', error_description: grantId.message })
    }
    // The user may have signed in with another wallet from the page of consent.
    const confirmed = isNewSince(found.record, session)
      ? { confirmed: { sessionId: session.id, isFresh: true } }
      : undefined
    return await finish({ ...resultOf(payload), ...confirmed, consent: { grantId } })
  }

  /** The page that asks whether to sign out, after the library has checked where it leads then. */
  askLogout(session: Session | undefined, { clientId, redirectTo }: LogoutRequest): LibraryAnswer {
    const metadata = this.#parts.directory.seen(String(clientId))?.metadata
    const client: ShownClient | undefined = metadata && shownClient(metadata)
    if (session === undefined) {
      return redirectTo === undefined ? this.#parts.page(200, { kind: 'signed-out', client }) : leadTo(redirectTo)
    }
    const content: LogoutTicket = { sessionId: session.id, redirectTo, until: this.#parts.store.now() + ticketMs }
    const ticket = signTicket(this.#parts.keyring, ticketPurpose, content)
    return this.#parts.page(200, { kind: 'logout', client, wallet: walletOf(session), ticket })
  }

  /** Ends the session that the page of {@link askLogout} was for. Resolves with the address to go to, if any. */
  async logOut(session: Session | undefined, input: object): Promise<string | undefined> {
    const { ticket } = input as { ticket?: unknown }
    const signed = readTicket<LogoutTicket>(this.#parts.keyring, ticketPurpose, String(ticket))
    if (signed === undefined || this.#parts.store.now() >= signed.until) throw gone()
    const { sessionId, redirectTo } = signed
    if (session !== undefined && session.id !== sessionId) throw changed()
    if (session !== undefined) await this.#parts.host.endSession(session.userId, session.id)
    return redirectTo
  }

  async #read(uid: string, cookies: readonly BrowserCookie[]): Promise<ReadRecord<StoredInteraction> | undefined> {
    const { records, store } = this.#parts
    const found = await records.find<StoredInteraction>('Interaction', uid)
    const secrets = cookies.map(({ secret }) => secret)
    if (found === undefined || !isOfBrowser(found.record, secrets)) return undefined
    return (found.record.payload.exp ?? 0) * 1000 > store.now() ? found : undefined
  }

  async #replace(uid: string, found: ReadRecord<StoredInteraction>, record: StoredInteraction): Promise<boolean> {
    const { records, store } = this.#parts
    const life = { ttlMs: Math.max(1, (record.payload.exp ?? 0) * 1000 - store.now()) }
    return await records.replace(found, { kind: 'Interaction', id: uid, record, life })
  }

  /** Stores a result, with which the library goes on at the address that this resolves with. */
  async #finish(uid: string, found: ReadRecord<StoredInteraction>, result: OwnResult): Promise<string> {
    const { payload } = found.record
    // The library compares the session with that at the start, which is another if the user signed in meanwhile. Who is
    // signed in is decided by the policy, by the live session.
    const { session: _session, ...rest } = payload
    const record: StoredInteraction = { ...found.record, payload: { ...rest, result } }
    if (!(await this.#replace(uid, found, record))) throw changed()
    return String(payload.returnTo) + languageQuery(payload.params?.ui_locales)
  }

  /** What a client asks for, and where the answer goes. */
  #questionOf(payload: AdapterPayload, client: FileClient) {
    const { metadata, documentHost } = client
    const redirectUri = String(payload.params?.redirect_uri)
    // Documents of strangers mix both kinds.
    const isElsewhere = isWeb(documentHost === undefined ? metadata : { redirect_uris: [redirectUri] })
    const host = isElsewhere ? URL.parse(redirectUri)?.host : undefined
    const scopes = [...this.#asked(payload, client)]
    return { host, documentHost, scopes, scopeWords: wordsOf(scopes, this.#parts.loaded().resources) }
  }

  /** Whether the session's user is in one of the client's groups. */
  #mayUse(client: FileClient, session: Session): boolean {
    return mayUse(session, client, this.#parts.loaded().people)
  }

  /** The client of a request. `away`: its metadata document is, which the library had a moment ago. */
  async #clientOf({ params }: AdapterPayload, request: RequestContext): Promise<FileClient | 'away' | undefined> {
    try {
      return await this.#parts.directory.find(String(params?.client_id), { request, route: undefined })
    } catch (thrown) {
      if (thrown instanceof DocumentUnavailable || thrown instanceof DocumentInvalid) return 'away'
      throw thrown
    }
  }

  #asked(payload: AdapterPayload, client: FileClient): ReadonlySet<Permission> {
    return permissionsIn(payload.params ?? {}, offeredTo(client, this.#parts.loaded()))
  }

  #toSignIn(path: string, { params }: AdapterPayload, isAgain: boolean): LibraryAnswer {
    // A user's id has no colon; the page ignores what is no wallet.
    const hint = String(params?.login_hint ?? '')
    const wanted = { ...(isAgain ? { again: '1' } : {}), ...(hint.includes(':') ? { wallet: hint } : {}) }
    return leadTo(this.#signInAddress(path, params?.ui_locales, wanted))
  }

  /** The sign-in page with parameters of its own. It leads back to an interaction. */
  #signInAddress(path: string, locales: unknown, wanted: Readonly<Record<string, string>>): string {
    const language = typeof locales === 'string' ? { ui_locales: locales } : undefined
    const returnTo = `${path}?${new URLSearchParams({ back: '1', ...language })}`
    return signInAddress(this.#parts.settings.basePath, returnTo, { ...language, ...wanted })
  }

  #gone(): LibraryAnswer {
    return this.#parts.page(400, { kind: 'over' })
  }
}

function walletOf({ adapterId, address }: Session): Pick<Session, 'adapterId' | 'address'> {
  return { adapterId, address }
}

/** Whether a session began after an interaction did, so that the user has chosen its wallet for that. */
function isNewSince({ payload, startedAt }: StoredInteraction, { id, createdAt }: Session): boolean {
  return id !== payload.session?.uid && createdAt >= startedAt
}

/** What the ticket of a logout page says. */
interface LogoutTicket {
  readonly sessionId: string
  readonly redirectTo: string | undefined
  /** By the store's clock, epoch milliseconds. */
  readonly until: number
}

const ticketPurpose = 'oidc ticket'

/** Life of the ticket of a logout page, in ms. */
const ticketMs = 10 * 60_000

/** The prompt that the library has stored. */
function promptOf(payload: AdapterPayload): { readonly name: string; readonly reasons: readonly string[] } {
  return (payload.prompt ?? { name: '', reasons: [] }) as ReturnType<typeof promptOf>
}

function resultOf(payload: AdapterPayload): OwnResult {
  return (payload.lastSubmission ?? {}) as OwnResult
}

/** The languages that a client asks for, for the script of a page. */
export function languageQuery(locales: unknown): string {
  return typeof locales === 'string' ? `?${new URLSearchParams({ ui_locales: locales })}` : ''
}

function gone(): CountersignError {
  return new CountersignError('INVALID_REQUEST', 'This sign-in is over, or began in another browser; start again')
}
