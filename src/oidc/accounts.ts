import type { AdapterPayload, FindAccount } from 'oidc-provider'
import { applicationStepMs, applicationSteps } from '../base/timing/time-limit.ts'
import type { Session } from '../core/users/host.ts'
import { hostUnavailable } from '../shared/errors.ts'
import { type ClaimsSubject, type ClaimsWallet, isReservedClaim, type OwnClaims } from './claims.ts'
import type { SharedParts } from './parts.ts'
import { claimsOf, type People } from './people.ts'
import { requestState } from './request-state.ts'

export type AccountParts = Pick<SharedParts, 'grants' | 'host' | 'settings'>

/** Finds the account of a token or of the browser: that of a session, which is read at each use. */
export function accountsOf(parts: AccountParts, people: People): FindAccount {
  return async ({ oidc }, accountId, token) => {
    const session = token === undefined ? requestState.getStore()?.session : await sessionOf(parts, token)
    if (session?.userId !== accountId) return undefined
    const clientId = oidc.client?.clientId ?? ''
    return {
      accountId,
      claims: async () => ({ ...(await claimsIn(session, clientId, parts, people)), sub: accountId }),
    }
  }
}

/** What a token says of where it comes from. */
type BoundToken = Partial<Pick<AdapterPayload, 'grantId' | 'expiresWithSession'>>

/** Who an account is of: a session, or what is left of one. */
type AccountSession = Pick<Session, 'id' | 'userId' | 'adapterId' | 'address' | 'publicKeyHex'>

/** The session that a token acts for, if it still may: with offline access, if its user still has its wallet. */
async function sessionOf(
  { grants, host }: AccountParts,
  { grantId, expiresWithSession }: BoundToken,
): Promise<AccountSession | undefined> {
  const usedUp = requestState.getStore()?.usedUp
  const grant = usedUp?.grantId === grantId ? usedUp?.grant : grantId && (await grants.read(grantId))
  if (!grant) return undefined
  if (expiresWithSession === true) return await host.findSession(grant.sessionId)
  const session = await host.offline.find(grant.sessionId)
  return session !== undefined && (await host.holdsWallet(session.userId, session)) ? session : undefined
}

/**
 * What an access token for a resource says beside the claims of RFC 9068: the wallet, and the session that the token is
 * bound to, if it is.
 */
export async function resourceClaims(
  parts: AccountParts,
  token: BoundToken,
): Promise<Readonly<Record<string, unknown>>> {
  const session = await sessionOf(parts, token)
  if (session === undefined) throw new TypeError('the session has ended')
  return { ...(token.expiresWithSession === true ? { sid: session.id } : {}), wallet: walletClaim(session) }
}

/** The claims of a session's user, by all scopes. */
async function claimsIn(
  { userId, adapterId, address, publicKeyHex }: AccountSession,
  clientId: string,
  { host, settings }: AccountParts,
  people: People,
): Promise<object> {
  const own: ClaimsWallet = { adapterId, address, publicKeyHex }
  const others = (await host.walletsOf(userId)).filter((each) => !isSame(each, own))
  const name = addressName(own)
  const ask: OwnClaims = settings.claims ?? (async (subject) => claimsOf(people, subject))
  const given = await askClaims(ask, { userId, wallet: own, clientId })
  const extra = Object.fromEntries(Object.entries(given).filter(([claim]) => !isReservedClaim(claim)))
  const { email = settings.email?.replace('{user_id}', emailPart(userId)) } = extra
  return {
    preferred_username: name,
    name,
    nickname: name.slice(0, 8),
    ...(email === undefined ? {} : { email, email_verified: false }),
    ...extra,
    wallets: [own, ...others].map(walletClaim),
  }
}

function walletClaim({ adapterId, address, publicKeyHex }: ClaimsWallet): object {
  return { adapter_id: adapterId, address, public_key_hex: publicKeyHex }
}

/** Asks the application for its claims. HOST_UNAVAILABLE if it fails, or takes longer than an application may. */
async function askClaims(claims: OwnClaims, subject: ClaimsSubject): Promise<object> {
  const late = (): Error => new Error(`oidc.claims() did not answer within ${applicationStepMs / 1000} seconds`)
  try {
    const given: unknown = await applicationSteps.within((async () => await claims(subject))(), late)
    if (typeof given !== 'object' || given === null) throw new TypeError('oidc.claims() must return an object')
    return given
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
