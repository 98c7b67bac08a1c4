import type { ClaimsSubject } from '../core/users/application.ts'
import { type Check, checkOf, type Fields, isObject, readJson } from './json-file.ts'

/** Whether an application cannot set a claim: the protocol's own, and names that every object of JavaScript has. */
export function isReservedClaim(name: string): boolean {
  return protocolClaims.has(name) || name in Object.prototype
}

const protocolClaims: ReadonlySet<string> = new Set([
  ...'iss sub aud exp nbf iat jti client_id scope cnf events'.split(' '),
  ...'amr acr auth_time azp nonce sid at_hash c_hash s_hash'.split(' '),
  'wallets',
])

/** The claims that each scope gives. */
export const claimsOfScopes = {
  openid: ['sub', 'amr', 'auth_time'],
  profile: ['preferred_username', 'name', 'nickname'],
  wallet: ['wallets'],
  email: ['email', 'email_verified'],
  groups: ['groups', 'role', 'roles'],
} as const satisfies Record<string, readonly string[]>

/** The scopes of the issuer. Without e-mail addresses, `email` is not offered. */
export const issuerScopes: readonly string[] = [...Object.keys(claimsOfScopes), 'offline_access']

/** Claims of people, by user id or by wallet as `{adapter_id}:{address}`. */
export type People = ReadonlyMap<string, Fields>

/**
 * Reads a people file, all of it or nothing: a JSON object with the claims of each person.
 *
 * @throws TypeError of one line that names the file and the person, if something does not fit.
 */
export async function readPeopleFile(file: string): Promise<People> {
  const check: Check = checkOf(`oidc.people (COUNTERSIGN_OIDC_PEOPLE), the file ${file}, `)
  const json = await readJson(file, check)
  check(isObject(json), 'must be {"{user id}": {"name": …}, "{adapter_id}:{address}": {…}}')
  const people = new Map<string, Fields>()
  for (const [who, claims] of Object.entries(json)) {
    const person = JSON.stringify(who.slice(0, 100))
    check(isObject(claims), `${person}: must be an object of claims`)
    const reserved = Object.keys(claims).find(isReservedClaim)
    check(reserved === undefined, `${person}: "${reserved}" is reserved`)
    const key = keyOf(who)
    check(!people.has(key), `${person} is there twice`)
    people.set(key, claims)
  }
  return people
}

/** The claims of a user: those of the user's id, else those of the wallet that the user signed in with. */
export function claimsOf(people: People, { userId, wallet }: Omit<ClaimsSubject, 'clientId'>): Fields {
  const { adapterId, address } = wallet
  return people.get(keyOf(userId)) ?? people.get(keyOf(`${adapterId}:${address}`)) ?? {}
}

/** Names of claims in a people file that no scope has. */
export function furtherClaims(people: People): readonly string[] {
  const known: ReadonlySet<string> = new Set(Object.values(claimsOfScopes).flat())
  const names = new Set([...people.values()].flatMap((claims) => Object.keys(claims)))
  return [...names].filter((name) => !known.has(name))
}

/** Whether any person has an e-mail address. */
export function haveEmail(people: People): boolean {
  return [...people.values()].some(({ email }) => email !== undefined)
}

/** Addresses are the same with and without spaces. */
function keyOf(who: string): string {
  return who.replaceAll(' ', '')
}
