import type { AdapterPayload, FindAccount } from 'oidc-provider'
import type { Fields } from '../base/json-file.ts'
import type { Logger } from '../base/log.ts'
import { isReservedClaim } from '../base/reserved-claims.ts'
import { applicationStepMs, applicationSteps } from '../base/timing/time-limit.ts'
import { isMadeUserId } from '../base/token.ts'
import type { ClaimsSubject, ClaimsWallet, OwnClaims } from '../core/users/application.ts'
import type { People } from '../core/users/people.ts'
import type { PastSession } from '../core/users/sessions.ts'
import { hostUnavailable } from '../shared/errors.ts'
import { mayUse } from './clients.ts'
import type { ConnectedApps } from './connected-apps.ts'
import type { IssuerParts, Loaded } from './issuer-parts.ts'
import { type Library, requestState } from './library-request.ts'

export interface AccountParts extends Pick<IssuerParts, 'host' | 'users' | 'settings' | 'log'> {
  readonly apps: ConnectedApps
  readonly library: Library
}

/** Finds the account of a token or of the browser: that of a session, which is read at each use. */
export function accountsOf(parts: AccountParts, { clients, people }: Pick<Loaded, 'clients' | 'people'>): FindAccount {
  return async ({ oidc }, accountId, token) => {
    const session = token === undefined ? requestState.getStore()?.session : await sessionOf(parts, token)
    if (session?.userId !== accountId) return undefined
    const clientId = oidc.client?.clientId ?? ''
    const client = clients.get(clientId)
    // At authorization, the policy has a page for it.
    if (token !== undefined && client !== undefined && !mayUse(session, client, people)) {
      if (oidc.route !== 'token') return undefined
      throw new parts.library.errors.AccessDenied('this application is not for the account')
    }
    return {
      accountId,
      claims: async () => ({ ...(await claimsIn(session, clientId, parts, people)), sub: accountId }),
    }
  }
}

/** The session of a token, and whether the token ends with it. */
type BoundToken = Partial<Pick<AdapterPayload, 'kind' | 'accountId' | 'clientId' | 'sessionUid' | 'expiresWithSession'>>

/**
 * The session that a token acts for, if it still may: with offline access, if its user still has its wallet. The
 * library has checked the grant.
 */
async function sessionOf({ host, users, apps }: AccountParts, token: BoundToken): Promise<PastSession | undefined> {
  const { accountId, clientId, sessionUid, expiresWithSession } = token
  if (sessionUid === undefined) return undefined
  if (expiresWithSession === true) return await host.findSession(sessionUid)
  const session = await apps.findOffline(String(accountId), String(clientId), sessionUid)
  return session !== undefined && (await users.holds(session.userId, session)) ? session : undefined
}

/**
 * What an access token for a resource says in addition to the claims of RFC 9068: with the scope `wallet` the wallet,
 * with `groups` the groups of the people file. The user was asked for these scopes.
 */
export async function resourceClaims(
  parts: AccountParts,
  people: People,
  token: BoundToken,
  scopes: readonly string[],
): Promise<Fields> {
  const session = await sessionOf(parts, token)
  if (session === undefined) throw new parts.library.errors.InvalidGrant('the session has ended')
  const { groups } = people.find(session) ?? {}
  return {
    ...(scopes.includes('wallet') ? { wallet: walletClaim(session) } : {}),
    ...(scopes.includes('groups') && groups !== undefined ? { groups } : {}),
  }
}

/**
 * The claims of a session's user, by all scopes: those of the people file, to which the application's function adds.
 */
async function claimsIn(
  session: PastSession,
  clientId: string,
  { users, settings: { oidc: settings }, log }: AccountParts,
  people: People,
): Promise<Fields> {
  const { userId, adapterId, address, publicKeyHex } = session
  const own: ClaimsWallet = { adapterId, address, publicKeyHex }
  const others = (await users.walletsOf(userId)).filter((each) => !isSame(each, own))
  const subject = { userId, wallet: own, clientId }
  const byFile = people.find(session) ?? {}
  const byFunction = settings.claims === undefined ? {} : await askClaims(settings.claims, subject, log)
  const byTemplate: Fields = { email: settings.email?.replace('{user_id}', emailPart(userId)) }
  // An address comes with the `email_verified` of its own source.
  const { email, email_verified: verified = false } =
    [byFunction, byFile].find((claims) => claims.email !== undefined) ?? byTemplate
  const name = addressName(own)
  return {
    preferred_username: name,
    name,
    nickname: name.slice(0, 8),
    ...byFile,
    ...byFunction,
    email,
    email_verified: email === undefined ? undefined : verified,
    wallets: [own, ...others].map(walletClaim),
  }
}

/** A hint of a request, and who is signed in. */
interface Hinted {
  readonly hint: string
  readonly session: PastSession
}

/**
 * Whether a hint (`login_hint`) names another user than the one who is signed in: by a wallet, or by an id of the form
 * that the service makes. Anything else says nothing. So the answer follows from the hint and the user alone: clients
 * cannot find out who is in the people file.
 */
export async function isHintOfAnother(
  { hint, session }: Hinted,
  { users, readWallet }: Pick<IssuerParts, 'users' | 'readWallet'>,
): Promise<boolean> {
  if (hint === session.userId) return false
  const wallet = readWallet(hint)
  if (wallet === undefined) return isMadeUserId(hint)
  return ![session, ...(await users.walletsOf(session.userId))].some(wallet.fits)
}

function walletClaim({ adapterId, address, publicKeyHex }: ClaimsWallet): object {
  return { adapter_id: adapterId, address, public_key_hex: publicKeyHex }
}

/** The functions whose claims of the protocol were dropped: a warning for each is enough. */
const warnedOf = new WeakSet<OwnClaims>()

/**
 * Asks the application for its claims, without those of the protocol. HOST_UNAVAILABLE if it fails, or takes longer
 * than an application may.
 */
async function askClaims(claims: OwnClaims, subject: ClaimsSubject, log: Logger): Promise<Fields> {
  const late = (): Error => new Error(`oidc.claims() did not answer within ${applicationStepMs / 1000} seconds`)
  try {
    const given: unknown = await applicationSteps.within((async () => await claims(subject))(), late)
    if (typeof given !== 'object' || given === null) throw new TypeError('oidc.claims() must return an object')
    const [reserved, own] = [Object.keys(given).find(isReservedClaim), Object.entries(given)]
    if (reserved !== undefined && !warnedOf.has(claims)) {
      warnedOf.add(claims)
      log.warn('oidc.claims() returns a claim that is reserved for the protocol; it is dropped', { claim: reserved })
    }
    return Object.fromEntries(own.filter(([claim]) => !isReservedClaim(claim)))
  } catch (cause) {
    throw hostUnavailable(cause)
  }
}

function isSame(one: ClaimsWallet, other: ClaimsWallet): boolean {
  return one.adapterId === other.adapterId && one.address === other.address
}

/** An address without spaces; a contract wallet's CAIP-10 `eip155:{chain}:{address}` as `{address}-{chain}`. */
function addressName({ address }: ClaimsWallet): string {
  const [, chain, contract] = /^eip155:(\d+):(0x[0-9a-fA-F]{40})$/.exec(address) ?? []
  return chain === undefined ? address.replaceAll(' ', '') : `${contract}-${chain}`
}

/** A user's id as the local part of an address. An application's own ids can have any characters. */
function emailPart(userId: string): string {
  return encodeURIComponent(userId).replaceAll('%', '=').replaceAll('!', '=21').replaceAll("'", '=27')
}
