import type { Read } from './application-step.ts'
import type { CurrentSession, HostUser, IssuedSession, Session } from './host.ts'

// What the application answers is copied field by field, and each field is read once: an object can have getters or be a Proxy,
// and must not be one thing when it is checked and another when it is used.

/** Longest identifier of a user, a session, an order or a computer, in characters. */
const maxIdLength = 200

/** Longest text of any other kind, in characters. No header that a client sends is longer. */
const maxTextLength = 16_384

/** Most Set-Cookie headers of one answer. */
const maxCookies = 50

/** Characters that a header can carry (RFC 9110), without the tab. A line break would begin a header of its own. */
const headerValue = /^[ -~\u0080-\u00ff]+$/

/** Characters that `Authorization: Bearer` can carry. */
const bearerToken = /^[!-~]+$/

/** Reads text of a length. Half of a surrogate pair is refused, because no protocol can write it. */
function text(min: number, max: number): Read<string> {
  return (what, answer) => {
    if (typeof answer === 'string' && answer.length >= min && answer.length <= max && answer.isWellFormed())
      return answer
    throw new TypeError(`${what} must be text of ${min} to ${max} characters`)
  }
}

const id = text(1, maxIdLength)
const anyText = text(0, maxTextLength)

const time: Read<number> = (what, answer) => {
  if (Number.isSafeInteger(answer)) return answer as number
  throw new TypeError(`${what} must be a time in epoch milliseconds, a whole number`)
}

const token: Read<string> = (what, answer) => {
  const read = text(1, maxTextLength)(what, answer)
  if (bearerToken.test(read)) return read
  throw new TypeError(`${what} must consist of printable ASCII characters without spaces`)
}

const cookie: Read<string> = (what, answer) => {
  const read = text(1, maxTextLength)(what, answer)
  if (headerValue.test(read)) return read
  throw new TypeError(`${what} must not have line breaks or control characters, because it becomes a header`)
}

function optional<Result>(read: Read<Result>): Read<Result | undefined> {
  return (what, answer) => (answer === undefined ? undefined : read(what, answer))
}

function listOf<Result>(read: Read<Result>, most = Number.POSITIVE_INFINITY): Read<Result[]> {
  return (what, answer) => {
    if (!Array.isArray(answer)) throw new TypeError(`${what} must be an array`)
    if (answer.length > most) throw new TypeError(`${what} must have at most ${most} entries`)
    return Array.from(answer, (entry, index) => read(`${what}[${index}]`, entry))
  }
}

/** How to read each field of an object. A field that is not in the list is not taken over. */
type Fields<Result> = { readonly [Field in keyof Required<Result>]: Read<Result[Field]> }

function object<Result extends object>(fields: Fields<Result>): Read<Result> {
  return (what, answer) => {
    if (typeof answer !== 'object' || answer === null) throw new TypeError(`${what} must be an object`)
    const read = Object.entries<Read<unknown>>(fields).map(([field, readField]) => [
      field,
      readField(`${what}.${field}`, (answer as Record<string, unknown>)[field]),
    ])
    return Object.fromEntries(read.filter(([, value]) => value !== undefined)) as Result
  }
}

const cookies = listOf(cookie, maxCookies)

const session = object<Session>({
  id,
  userId: id,
  adapterId: anyText,
  publicKeyHex: anyText,
  address: anyText,
  createdAt: time,
  expiresAt: time,
  orderId: optional(id),
  ip: anyText,
  userAgent: anyText,
  computerId: optional(id),
})

/** How to read what each method of a host answers. */
export const answers = {
  id,
  user: object<HostUser>({ id }),
  issuedSession: object<IssuedSession>({ token, session, cookies }),
  currentSession: object<CurrentSession>({ session, cookies }),
  cookies,
  sessions: listOf(session),
  session: optional(session),
  yesOrNo: ((what, answer) => {
    if (typeof answer === 'boolean') return answer
    throw new TypeError(`${what} must be true or false`)
  }) satisfies Read<boolean>,
} as const
