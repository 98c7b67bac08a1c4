import { randomBytes } from 'node:crypto'
import type { CountersignOptions } from '../../src/service/config.ts'
import { rest } from '../support/rest.ts'
import { startService } from '../support/service.ts'
import { proofOf, type TestWallet } from '../support/wallet.ts'
import type { ColumnId } from './table.ts'

/** A call that the service refused. */
export class Refused extends Error {
  readonly reason: string

  constructor(reason: string) {
    super(reason)
    this.reason = reason
  }
}

/** The reason for which a call was refused; `undefined` if it was not. */
export async function reasonOf(call: Promise<unknown>): Promise<string | undefined> {
  try {
    await call
    return undefined
  } catch (error) {
    if (error instanceof Refused) return error.reason
    throw error
  }
}

/** Where a device is, and what it says it is. */
export interface Place {
  readonly ip: string
  readonly userAgent: string
}

/** Addresses on three public networks: of the attacker, of the victim, and of a neighbour on the victim's network. */
export const places = {
  attacker: { ip: '203.0.113.7', userAgent: 'Attacker/1.0' },
  victimsComputer: { ip: '198.51.100.20', userAgent: 'Computer/1.0' },
  victimsPhone: { ip: '198.51.100.21', userAgent: 'Phone/1.0' },
  neighbour: { ip: '198.51.100.99', userAgent: 'Attacker/1.0' },
} as const satisfies Record<string, Place>

const startKey = randomBytes(32).toString('base64url')

/** What each column of the table sets. All else is as it is by default. */
const settings: Readonly<Record<ColumnId, CountersignOptions>> = {
  compare: { confirmationCode: 'compare' },
  return: { confirmationCode: 'return', knownComputers: false },
  known: { confirmationCode: 'return', knownComputers: true },
  proximity: { confirmationCode: 'compare', proximity: 'enforce' },
  startKeys: { confirmationCode: 'compare', orderStartKeys: [startKey] },
  link: {},
}

/** A service with one column's settings, behind a proxy that tells the callers' addresses. */
export class Scene {
  readonly url: string
  readonly column: ColumnId
  /** The origin of the application's pages. */
  readonly #origin: string
  /** The application's own backend, if only that starts orders. */
  readonly backend: Backend | undefined

  private constructor(url: string, column: ColumnId, origin: string) {
    this.url = url
    this.#origin = origin
    this.column = column
    this.backend = column === 'startKeys' ? new Backend(url) : undefined
  }

  /** The application's pages are the service's own, unless `trustedOrigins` names others. */
  static async open(column: ColumnId, options: CountersignOptions = {}): Promise<Scene> {
    const { url } = await startService({ trustProxy: 1, ...settings[column], ...options })
    return new Scene(url, column, options.trustedOrigins?.[0] ?? url)
  }

  /**
   * Calls the service as a page of its origin does, from some place. Anybody can: the Origin header is what the caller
   * says. Rejects with {@link Refused}.
   */
  async call(place: Place, path: string, body?: object, token?: string) {
    return await call(this.url, path, body, {
      origin: this.#origin,
      'x-forwarded-for': place.ip,
      'user-agent': place.userAgent,
      ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
    })
  }

  /** Signs a wallet in on the device that has it. Resolves with the session token. */
  async signIn(place: Place, wallet: TestWallet): Promise<string> {
    const proof = proofOf(wallet, await this.call(place, '/wallet/nonce', {}))
    return (await this.call(place, '/wallet/verify', proof)).token
  }

  /** Whether a session is one of this wallet or, in the column for adding wallets, one of the user who has it now. */
  async hasGained(token: string, address: string): Promise<boolean> {
    if (this.column !== 'link') return (await this.signedIn(token)) === address
    const { json } = await rest(this.url, '/wallet/list', undefined, { authorization: `Bearer ${token}` })
    return json.wallets.some((wallet: { readonly address: string }) => wallet.address === address)
  }

  /** The address of the wallet that a session token signs in; `undefined` if it signs nobody in. */
  async signedIn(token: string): Promise<string | undefined> {
    const { status, json } = await rest(this.url, '/session', undefined, { authorization: `Bearer ${token}` })
    return status === 200 ? json.session.address : undefined
  }

  /** Ends all sessions of a session's user but that one. */
  async revokeOthers(token: string): Promise<void> {
    const response = await fetch(`${this.url}/countersign.v1.SessionService/RevokeOtherSessions`, {
      method: 'POST',
      body: '{}',
      headers: { origin: this.url, 'content-type': 'application/json', authorization: `Bearer ${token}` },
    })
    if (response.status !== 200) throw new Refused(await response.text())
  }
}

/** The application's backend: starts orders for whoever opens its site, with words of its own. */
export class Backend {
  readonly #url: string
  static readonly title = 'Sign in to Example'

  constructor(url: string) {
    this.#url = url
  }

  async startFor({ ip, userAgent }: Place, computerKey: string | undefined) {
    const requester = { origin: this.#url, ip, userAgent }
    return await call(
      this.#url,
      '/cross-device/start',
      { kind: 'login', displayTitle: Backend.title, requester, computerKey },
      { authorization: `Bearer ${startKey}` },
    )
  }
}

async function call(url: string, path: string, body: object | undefined, headers: Record<string, string>) {
  const { status, json } = await rest(url, path, body, headers)
  if (status !== 200) throw new Refused(json.code)
  return json
}
