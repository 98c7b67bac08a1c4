import { networkOfRequest, sameNetwork } from '../base/networks.ts'
import type { RequestContext } from '../base/request.ts'
import type { Session } from '../core/users/host.ts'
import type { Exchange } from '../http/exchange.ts'
import { CountersignError, refused } from '../shared/errors.ts'
import { cookieName, cookieValue, setCookie } from '../shared/header-text.ts'
import { typedCode } from '../shared/typed-code.ts'
import { changed, readPageInput, readTicket, sendAnswer, sendPageJson, signTicket } from './answers.ts'
import { type FileClient, mayUse, offeredTo, shownClient, usesDevices, wordsOf } from './clients.ts'
import { GrantsFull } from './connected-apps.ts'
import { DeviceCodes, devicePath, deviceSeconds, type PendingCode, type Terminal, userCodes } from './device-codes.ts'
import { type Grants, type Permission, permissionsIn, scopesIn, sidOf } from './grants.ts'
import type { IssuerParts, Loaded } from './issuer-parts.ts'
import type { LibraryAnswer } from './library-request.ts'
import { leadTo, type Navigations, type ShowPage, signInAddress } from './pages.ts'
import type { SealedRecords } from './sealed-records.ts'

/** What a browser has typed, which its cookie keeps while its user signs in. */
interface Typed {
  readonly userCode: string
  /** Time by the store's clock, epoch milliseconds. */
  readonly at: number
}

/** A code that a browser has typed, with the client that asked for it. */
interface TypedCode {
  readonly pending: PendingCode
  readonly client: FileClient
  readonly terminal: Terminal
  readonly asked: ReadonlySet<Permission>
}

/** A user's answer to the page, which has not been checked. */
interface Decision {
  readonly allow?: unknown
  readonly sessionId?: unknown
  readonly code?: unknown
  readonly scopes?: unknown
}

interface DevicePageParts
  extends Pick<IssuerParts, 'settings' | 'publicUrl' | 'store' | 'keyring' | 'host' | 'limiter'> {
  readonly records: SealedRecords
  readonly grants: Grants
  readonly page: ShowPage
  readonly loaded: () => Loaded
}

/**
 * The page for codes of devices (RFC 8628, 3.3). A person types the code, signs in, and decides; nothing that was there
 * before the code was typed decides for them.
 */
export class DevicePage {
  readonly #parts: DevicePageParts
  readonly #navigations: Navigations
  readonly #codes: DeviceCodes

  constructor(parts: DevicePageParts, navigations: Navigations) {
    this.#parts = parts
    this.#navigations = navigations
    this.#codes = new DeviceCodes(parts)
  }

  async serve(exchange: Exchange): Promise<void> {
    if (exchange.method === 'POST') return await this.#answer(exchange)
    await this.#navigations.serve(exchange, ['GET', 'POST'], async () => {
      const { context, query, headers } = exchange
      const session = await this.#parts.host.browserSession(context)
      const isBack = new URLSearchParams(query).get('back') === '1'
      const typed = isBack ? this.#typedIn(headers.cookie) : undefined
      const answer =
        typed === undefined ? this.#parts.page(200, { kind: 'device-code' }) : await this.#next(typed, session, context)
      sendAnswer(exchange, answer, [])
    })
  }

  async #answer(exchange: Exchange): Promise<void> {
    const input: Decision = await readPageInput(exchange, this.#parts.publicUrl())
    if (input.sessionId === undefined) {
      const typed = await this.#type(String(input.code), exchange.context)
      return sendPageJson(exchange, { redirectTo: this.#signIn }, [
        setCookie(this.#cookieName, signTicket(this.#parts.keyring, ticketPurpose, typed), deviceSeconds),
      ])
    }
    await this.#conclude(exchange, input)
    sendPageJson(exchange, {}, [setCookie(this.#cookieName, '', 0)])
  }

  /** Takes what a person typed. A wrong code counts for the person's network, before it is compared; no other text. */
  async #type(text: string, request: RequestContext): Promise<Typed> {
    const userCode = typedCode(text).toUpperCase()
    if (!userCodes.typed.test(userCode)) throw wrongCode()
    const takeBack = await this.#parts.limiter?.countDeviceCode(request)
    const typed = { userCode, at: this.#parts.store.now() }
    const code = await this.#codeOf(typed)
    if (code === undefined) throw wrongCode()
    takeBack?.()
    this.#requireNear(code, request)
    return typed
  }

  /** What the user has to do next: sign in, or decide. */
  async #next(typed: Typed, session: Session | undefined, request: RequestContext): Promise<LibraryAnswer> {
    const { page, settings } = this.#parts
    const code = await this.#codeOf(typed)
    if (code === undefined) return page(400, { kind: 'over' })
    const { client, terminal, asked, pending } = code
    if (session === undefined || !isNewSince(typed, session)) return leadTo(this.#signIn)
    const shown = { client: shownClient(client.metadata), signIn: this.#signIn }
    if (session.orderId !== undefined) return page(403, { kind: 'device-direct', ...shown })
    const { adapterId, address, id: sessionId } = session
    if (!mayUse(session, client, this.#parts.loaded().people)) {
      return page(403, {
        kind: 'not-for-account',
        ...shown,
        wallet: `${adapterId}:${address}`,
        sessionId,
        code: pending.userCode,
      })
    }
    const compares = settings.proximity !== 'off'
    const { ip, userAgent } = terminal
    return page(200, {
      kind: 'consent',
      ...shown,
      host: undefined,
      scopes: [...asked],
      scopeWords: wordsOf(asked, this.#parts.loaded().resources),
      wallet: { adapterId, address },
      sessionId,
      device: {
        code: pending.userCode,
        ip,
        userAgent,
        sameNetwork: compares ? sameNetwork(terminal.network, networkOfRequest(request)) : undefined,
      },
    })
  }

  /** Writes the user's decision into the code, and gives the grant that was shown. */
  async #conclude({ context: request, headers }: Exchange, decision: Decision) {
    const { allow, sessionId, code: shownCode, scopes: shown } = decision
    const session = await this.#parts.host.browserSession(request)
    const typed = this.#typedIn(headers.cookie)
    if (typed === undefined || typed.userCode !== shownCode) throw changed()
    if (session === undefined || session.id !== sessionId) throw changed()
    const code = await this.#codeOf(typed)
    if (code === undefined) throw changed()
    const { pending, client, asked } = code
    if (allow !== true) {
      const declined = { error: 'access_denied', errorDescription: 'the user declined' }
      if (!(await this.#codes.decide(pending, declined))) throw changed()
      return
    }
    if (session.orderId !== undefined || !isNewSince(typed, session)) throw refused('SESSION_NOT_FRESH')
    if (!mayUse(session, client, this.#parts.loaded().people)) throw changed()
    this.#requireNear(code, request)
    const { client_id: clientId, backchannel_logout_session_required: wantsSid } = client.metadata
    // Not remembered: the next code is another device's.
    const grantId = await this.#parts.grants.allow(session, { clientId, asked, shown, isAllowed: false, request })
    if (grantId === undefined) throw changed()
    if (grantId instanceof GrantsFull) {
      await this.#codes.decide(pending, { error: 'access_denied', errorDescription: grantId.message })
      throw new CountersignError('INVALID_REQUEST', `This cannot be allowed: ${grantId.message}`)
    }
    const { userId: accountId, id: sessionUid, createdAt } = session
    const { resource } = pending.payload.params ?? {}
    const written = await this.#codes.decide(pending, {
      accountId,
      grantId,
      scope: scopesIn(asked),
      sessionUid,
      authTime: Math.floor(createdAt / 1000),
      amr: ['swk'],
      ...(asked.has('offline_access') ? {} : { expiresWithSession: true }),
      ...(resource === undefined ? {} : { resource: resource as string }),
      ...(wantsSid === true ? { sid: sidOf(sessionUid, clientId) } : {}),
    })
    if (!written) throw changed()
  }

  /** The typed code, while it waits for a decision, and its client may use the grant and have something of it. */
  async #codeOf({ userCode }: Typed): Promise<TypedCode | undefined> {
    const { loaded } = this.#parts
    const pending = await this.#codes.findPending(userCode)
    const client = pending && loaded().clients.get(String(pending.payload.clientId))
    if (pending === undefined || client === undefined || !usesDevices(client.metadata)) return undefined
    const { params = {}, deviceInfo } = pending.payload
    const asked = permissionsIn(params, offeredTo(client, loaded()))
    if (asked.size === 0) return undefined
    return { pending, client, asked, terminal: deviceInfo as unknown as Terminal }
  }

  #requireNear({ terminal }: TypedCode, request: RequestContext): void {
    if (this.#parts.settings.proximity !== 'enforce') return
    if (sameNetwork(terminal.network, networkOfRequest(request)) !== true) throw refused('NETWORK_MISMATCH')
  }

  /** The sign-in page, which leads back. */
  get #signIn(): string {
    return signInAddress(this.#parts.settings.basePath, `${devicePath}?back=1`, { again: '1' })
  }

  /** The typed code that a cookie keeps. The page of another browser has none. */
  #typedIn(cookies: string | undefined): Typed | undefined {
    return readTicket<Typed>(this.#parts.keyring, ticketPurpose, cookieValue(cookies, this.#cookieName) ?? '')
  }

  get #cookieName(): string {
    return cookieName('countersign_device', this.#parts.publicUrl().startsWith('https:'))
  }
}

const ticketPurpose = 'oidc device ticket'

/** Whether a session began after the code was typed. */
function isNewSince({ at }: Typed, { createdAt }: Session): boolean {
  return createdAt > at
}

function wrongCode(): CountersignError {
  return new CountersignError(
    'INVALID_REQUEST',
    'No device waits with this code; check it, or let the device show another',
  )
}
