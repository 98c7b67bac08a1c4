import { readFile } from 'node:fs/promises'
import { type ClaimsSubject, claimsOfScopes, isReservedClaim } from './claims.ts'

/** Claims of people, by user id or by wallet as `{adapter_id}:{address}`. */
export type People = ReadonlyMap<string, Readonly<Record<string, unknown>>>

/** Largest file in bytes. */
const maxBytes = 16 * 1024 * 1024

/**
 * Reads a people file, as a whole or not at all: a JSON object with the claims of each person.
 *
 * @throws TypeError of one line that names the file and the person, if something does not fit.
 */
export async function readPeopleFile(file: string): Promise<People> {
  const fail = (what: string): never => {
    throw new TypeError(`oidc.people (COUNTERSIGN_OIDC_PEOPLE), the file ${file}, ${what}`)
  }
  let json: unknown
  try {
    const text = await readFile(file, 'utf8')
    if (text.length > maxBytes) return fail('is larger than 16 MiB')
    json = JSON.parse(text)
  } catch (cause) {
    if (cause instanceof TypeError) throw cause
    const code = (cause as NodeJS.ErrnoException).code
    return fail(code === undefined ? 'is not JSON' : `cannot be read: ${code}`)
  }
  if (!isObject(json)) return fail('must be {"{user id}": {"name": …}, "{adapter_id}:{address}": {…}}')
  const people = new Map<string, Readonly<Record<string, unknown>>>()
  for (const [who, claims] of Object.entries(json)) {
    const person = JSON.stringify(who.slice(0, 100))
    if (!isObject(claims)) return fail(`${person}: must be an object of claims`)
    const reserved = Object.keys(claims).find(isReservedClaim)
    if (reserved !== undefined) return fail(`${person}: "${reserved}" is reserved`)
    const key = keyOf(who)
    if (people.has(key)) return fail(`${person} is there twice`)
    people.set(key, claims)
  }
  return people
}

/** The claims of a user: those of the user's id, else those of the wallet that the user signed in with. */
export function claimsOf(people: People, { userId, wallet }: ClaimsSubject): Readonly<Record<string, unknown>> {
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

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
