import type { Account, AdapterPayload, FindAccount } from 'oidc-provider'
import { applicationStepMs, applicationSteps } from '../base/timing/time-limit.ts'
import type { Session } from '../core/users/host.ts'
import { hostUnavailable } from '../shared/errors.ts'
import { type ClaimsSubject, type ClaimsWallet, isReservedClaim, type OwnClaims } from './claims.ts'
import type { Grants } from './grants.ts'
import { requestState } from './request-state.ts'

/** What accounts are made of. */
export interface AccountParts {
  readonly grants: Grants
  readonly findSession: (id: string) => Promise<Session | undefined>
  /** The session with offline access that has this id, if its user may still act with its wallet. */
  readonly findOffline: (id: string) => Promise<AccountSession | undefined>
  readonly walletsOf: (userId: string) => Promise<readonly ClaimsWallet[]>
  /** Template of the e-mail address, with `{user_id}`. Absent: there is none. */
  readonly email: string | undefined
  /** The application's own claims. Default: none. */
  readonly claims: OwnClaims | undefined
}

/** Finds the account of a token or of the browser: that of a session, which is read at each use. */
export function accountsOf(parts: AccountParts): FindAccount {
  return async (ctx, sub, token) => {
    const clientId = ctx.oidc.client?.clientId ?? ''
    if (token === undefined) {
      const session = requestState.getStore()?.session
      return session?.userId === sub ? accountOf(parts, session, clientId) : undefined
    }
    const session = await sessionOf(parts, token)
    return session?.userId === sub ? accountOf(parts, session, clientId) : undefined
  }
}

/** What a token says of where it comes from. */
type BoundToken = Partial<Pick<AdapterPayload, 'grantId' | 'expiresWithSession'>>

/** The session that a token acts for, if it still may. */
async function sessionOf(
  { grants, findSession, findOffline }: AccountParts,
  { grantId, expiresWithSession }: BoundToken,
): Promise<AccountSession | undefined> {
  const usedUp = requestState.getStore()?.usedUp
  const grant = usedUp?.grantId === grantId ? usedUp?.grant : grantId && (await grants.read(grantId))
  if (!grant) return undefined
  return expiresWithSession === true ? await findSession(grant.sessionId) : await findOffline(grant.sessionId)
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
  const { id, adapterId, address, publicKeyHex } = session
  return {
    ...(token.expiresWithSession === true ? { sid: id } : {}),
    wallet: { adapter_id: adapterId, address, public_key_hex: publicKeyHex },
  }
}

/** Who an account is of: a session, or what is left of one. */
type AccountSession = Pick<Session, 'id' | 'userId' | 'adapterId' | 'address' | 'publicKeyHex'>

function accountOf(parts: AccountParts, session: AccountSession, clientId: string): Account {
  const { userId, adapterId, address, publicKeyHex } = session
  const own: ClaimsWallet = { adapterId, address, publicKeyHex }
  return {
    accountId: userId,
    async claims() {
      const others = (await parts.walletsOf(userId)).filter((each) => !isSame(each, own))
      const name = addressName(own)
      const given = await askClaims(parts.claims, { userId, wallet: own, clientId })
      const extra = Object.fromEntries(Object.entries(given).filter(([claim]) => !isReservedClaim(claim)))
      const { email = parts.email?.replace('{user_id}', emailPart(userId)) } = extra
      return {
        preferred_username: name,
        name,
        nickname: name.slice(0, 8),
        ...(email === undefined ? {} : { email, email_verified: false }),
        ...extra,
        wallets: [own, ...others].map((each) => ({
          adapter_id: each.adapterId,
          address: each.address,
          public_key_hex: each.publicKeyHex,
        })),
        sub: userId,
      }
    },
  }
}

/** Asks the application for its claims. HOST_UNAVAILABLE if it fails, or takes longer than an application may. */
async function askClaims(claims: OwnClaims | undefined, subject: ClaimsSubject): Promise<object> {
  if (claims === undefined) return {}
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
