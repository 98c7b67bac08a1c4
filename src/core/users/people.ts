import { hash } from 'node:crypto'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { type Check, checkOf, type Fields, isObject, parseJson, readJsonText } from '../../base/json-file.ts'
import { isReservedClaim } from '../../base/reserved-claims.ts'
import { CountersignError, refused } from '../../shared/errors.ts'
import { areGroups, groupsExpected } from '../../shared/groups.ts'
import { readWalletKey } from '../wallet/adapters.ts'
import type { ProvenIdentity, WalletAdapter } from '../wallet/wallet.ts'
import type { Session } from './host.ts'
import type { PastSession } from './sessions.ts'

/** Claims of a person of the people file, by name: email, name, groups and others. */
export type Person = Fields & { readonly groups?: readonly string[] }

/** What finds a person: the user, the wallet that the user's id follows from, and the wallet that signed in. */
export interface PersonKey extends Pick<Session, 'userId' | 'adapterId' | 'address'> {
  /** See {@link Session.firstWallet}. Required, so that a copy of a session's fields cannot leave it out. */
  readonly firstWallet: string | undefined
}

/** Content of a people file. */
export class People {
  readonly byUserId: ReadonlyMap<string, Person>
  /** By adapter and canonical address, with a colon in between. */
  readonly byWallet: ReadonlyMap<string, Person>
  /** Names of the claims that any person has. */
  readonly claimNames: ReadonlySet<string>
  /** Hash of the file's text; empty without a file. */
  readonly textHash: string

  constructor(content: Partial<Pick<People, 'byUserId' | 'byWallet' | 'claimNames' | 'textHash'>> = {}) {
    this.byUserId = content.byUserId ?? new Map()
    this.byWallet = content.byWallet ?? new Map()
    this.claimNames = content.claimNames ?? new Set()
    this.textHash = content.textHash ?? ''
  }

  /**
   * The person with this user id, else the one of the wallet that the id follows from, unless it was moved to another
   * user, else the one of the wallet that signed in; `undefined` if none is listed.
   */
  find({ userId, firstWallet = '', adapterId, address }: PersonKey | PastSession): Person | undefined {
    return this.byUserId.get(userId) ?? this.byWallet.get(firstWallet) ?? this.byWallet.get(`${adapterId}:${address}`)
  }

  /** Number of entries. */
  get size(): number {
    return this.byUserId.size + this.byWallet.size
  }
}

/** The people file in force, and whether only its people may sign in. */
export class Membership {
  readonly #isRequired: boolean
  #people: People

  constructor(people: People = new People(), isRequired = false) {
    this.#people = people
    this.#isRequired = isRequired
  }

  /** Whether only people of the file may sign in. */
  get isRequired(): boolean {
    return this.#isRequired
  }

  get people(): People {
    return this.#people
  }

  /** Whether a person may sign in, and stay signed in for as long as a session lasts. */
  admits(key: PersonKey | PastSession): boolean {
    return !this.#isRequired || this.#people.find(key) !== undefined
  }

  /** Throws LOGIN_REFUSED if the person may not sign in. */
  requireListed(key: PersonKey): void {
    if (!this.admits(key)) throw notListed(key)
  }

  /** The groups of someone, by the file. */
  groupsOf(key: PersonKey | PastSession): readonly string[] {
    return this.#people.find(key)?.groups ?? []
  }

  /** Puts another content of the file in force. */
  replace(people: People): void {
    this.#people = people
  }
}

function notListed({ adapterId, address }: Pick<ProvenIdentity, 'adapterId' | 'address'>): CountersignError {
  return new CountersignError(
    'LOGIN_REFUSED',
    'This wallet is not on the list of people who may sign in; ask the operator to add it',
    { metadata: { adapter_id: adapterId, address } },
  )
}

const isNotListed = new Error('the people file does not list who is signed in')

/** The refusal of a session whose user may not sign in now. */
export function sessionNotListed(): CountersignError {
  return refused('SESSION_INVALID', { cause: isNotListed })
}

/** Whether a token was refused although it is right: it does not count as a wrong one. */
export function isRightToken(refusal: CountersignError): boolean {
  return refusal.cause === isNotListed
}

/** Time in milliseconds of checks and indexing after which other work of the process has a turn. */
const sliceMs = 10

/** Makes a function that waits for a turn of the event loop if a slice of time is over. */
function slices(): () => Promise<void> | undefined {
  let endsAt = performance.now() + sliceMs
  return () => {
    if (performance.now() < endsAt) return undefined
    return nextTurn().then(() => {
      endsAt = performance.now() + sliceMs
    })
  }
}

/** What decides how a people file is read. */
export interface PeopleFileRules {
  readonly adapters: readonly WalletAdapter[]
  /** Whether the file must list someone. */
  readonly isRequired: boolean
}

/**
 * Reads a people file, all of it or nothing: a JSON object with the claims of each person, by user id or by wallet as
 * `{adapter_id}:{address}`.
 *
 * @throws TypeError of one line that names the file and the person, if something does not fit.
 */
export async function readPeopleFile(file: string, { adapters, isRequired }: PeopleFileRules): Promise<People> {
  const check: Check = checkOf(`people (COUNTERSIGN_PEOPLE), the file ${file}, `)
  const text = await readJsonText(file, check)
  const json = parseJson(text, check)
  await nextTurn()
  check(isObject(json), 'must be {"{user id}": {"name": …}, "{adapter_id}:{address}": {…}}')
  const byUserId = new Map<string, Person>()
  const byWallet = new Map<string, Person>()
  const claimNames = new Set<string>()
  const pause = slices()
  const seen = new Set<string>()
  for (const name of namesIn(text)) {
    await pause()
    check(!seen.has(name), `${shown(name)} is there twice`)
    seen.add(name)
  }
  for (const [who, claims] of Object.entries(json)) {
    await pause()
    const checkHere: Check = checkOf(`people (COUNTERSIGN_PEOPLE), the file ${file}, ${shown(who)}: `)
    const person = readPerson(claims, checkHere)
    for (const name of Object.keys(person)) claimNames.add(name)
    const wallet = readWalletKey(who, adapters)
    if (wallet === undefined) {
      const adapter = adapters.find((each) => each.readAddress(who.trim()) !== undefined)
      checkHere(adapter === undefined, `is an address, and would be a user id: write "${adapter?.id}:" before it`)
      checkHere(who.length >= 1 && who.length <= 200, 'a user id has 1 to 200 characters')
      byUserId.set(who, person)
      continue
    }
    checkHere(wallet.problem === undefined, String(wallet.problem))
    const key = `${wallet.adapterId}:${wallet.address}`
    checkHere(!byWallet.has(key), 'is there twice')
    byWallet.set(key, person)
  }
  check(!isRequired || seen.size > 0, 'lists no one, and admit (COUNTERSIGN_ADMIT) is people: no one could sign in')
  return new People({ byUserId, byWallet, claimNames, textHash: hash('sha256', text) })
}

function readPerson(claims: unknown, check: Check): Person {
  check(isObject(claims), 'must be an object of claims')
  const reserved = Object.keys(claims).find(isReservedClaim)
  check(reserved === undefined, `"${reserved}" is reserved`)
  check(areGroups(claims.groups ?? []), `groups must be ${groupsExpected}`)
  return claims as Person
}

/** A key of the file in a message. */
function shown(key: string): string {
  return JSON.stringify(key.slice(0, 100))
}

/** The names of the object that is a JSON text, each as often as it is there: the parser keeps the last of two. */
function* namesIn(text: string): Generator<string> {
  let depth = 0
  for (const [token] of text.matchAll(/"[^"\\]*(?:\\.[^"\\]*)*"(?:\s*:)?|[{}[\]]/g)) {
    if (token === '{' || token === '[') depth++
    else if (token === '}' || token === ']') depth--
    else if (depth === 1 && token.endsWith(':')) yield JSON.parse(token.slice(0, -1))
  }
}
