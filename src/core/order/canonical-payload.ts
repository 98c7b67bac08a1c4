import { type CountersignError, invalidField } from '../../shared/errors.ts'
import { isPlainLine } from '../../shared/plain-line.ts'

/**
 * Most bytes (UTF-8) of a payload, both as it was sent and in canonical form, which is longer for numbers such as 1e15.
 */
const maxBytes = 8192

/** Most arrays and objects inside each other. */
const maxDepth = 8

const utf8 = new TextEncoder()

/**
 * Brings a payload into its canonical form (RFC 8785), on servers and in browsers. Any JSON value can be one, not only
 * an object.
 *
 * Throws INVALID_REQUEST if it is not I-JSON (RFC 7493): malformed, a name twice in an object, lone surrogates,
 * noncharacters. Also if it is larger than 8 KiB or deeper than 8 levels, has the name `__proto__`, or has characters
 * with which a text could look like another one ({@link isPlainLine}). The number in the canonical form is always the
 * one that was sent, although it may be written in another way (1.0, 1e2, -0). So numbers beyond 2^53-1 are refused,
 * and those with more digits than a double keeps, which RFC 7493 only advises against.
 */
export function canonicalPayload(text: string): string {
  if (isTooLarge(text)) throw refusal(`is larger than ${maxBytes} bytes`)
  const payload = new Reader(text).read()
  if (isTooLarge(payload)) throw refusal(`is larger than ${maxBytes} bytes in its canonical form`)
  return payload
}

function isTooLarge(text: string): boolean {
  // A text has at least as many bytes as UTF-16 code units.
  return text.length > maxBytes || utf8.encode(text).length > maxBytes
}

function refusal(what: string): CountersignError {
  return invalidField('payload', `payload ${what}`)
}

/**
 * White space, then a token: a sign, a string, or all that stands before the next of these, such as a number. The token
 * is empty at the end of the text, and at a string that does not end.
 */
const nextToken = /[\t\n\r ]*([[\]{}:,]|"(?:[^"\\]|\\.)*"|[^[\]{}:,"\t\n\r ]*)/suy

const noncharacter = /\p{Noncharacter_Code_Point}/u

/**
 * Reads a JSON text from front to back, and writes its canonical form. Strings and numbers are read by `JSON.parse`.
 */
class Reader {
  readonly #text: string
  /** The token to read next, and where it begins. */
  #token = ''
  #at = 0

  constructor(text: string) {
    this.#text = text
    this.#advance()
  }

  read(): string {
    const canonical = this.#value(1)
    if (this.#at < this.#text.length) throw this.#malformed()
    return canonical
  }

  #value(depth: number): string {
    if (this.#token !== '{' && this.#token !== '[') return JSON.stringify(this.#scalar())
    if (depth > maxDepth) throw this.#refusal(`has more than ${maxDepth} levels`)
    return this.#take('{') ? this.#object(depth) : this.#array(depth)
  }

  #object(depth: number): string {
    // A plain object would move names such as "10" to the front.
    const members = new Map<string, string>()
    if (!this.#take('}')) {
      do {
        const name = this.#name(members)
        this.#require(':')
        members.set(name, this.#value(depth + 1))
      } while (this.#take(','))
      this.#require('}')
    }
    // Without a comparison, sort() uses UTF-16 code units, as RFC 8785 does.
    const names = [...members.keys()].sort()
    return `{${names.map((name) => `${JSON.stringify(name)}:${members.get(name)}`).join(',')}}`
  }

  #array(depth: number): string {
    this.#require('[')
    const items: string[] = []
    if (!this.#take(']')) {
      do items.push(this.#value(depth + 1))
      while (this.#take(','))
      this.#require(']')
    }
    return `[${items.join(',')}]`
  }

  /** Reads a name that is not among those before it. */
  #name(before: ReadonlyMap<string, string>): string {
    const name = this.#parsed()
    if (typeof name !== 'string') throw this.#malformed()
    this.#checkText(name)
    if (name === '__proto__') throw this.#refusal('has the name __proto__')
    if (before.has(name)) throw this.#refusal('has a name twice in an object')
    this.#advance()
    return name
  }

  /** Reads a string, a number, `true`, `false` or `null`. */
  #scalar(): unknown {
    const value = this.#parsed()
    if (typeof value === 'string') this.#checkText(value)
    if (typeof value === 'number') this.#checkNumber(value)
    this.#advance()
    return value
  }

  #checkText(text: string): void {
    if (!text.isWellFormed()) throw this.#refusal('has a lone surrogate')
    if (noncharacter.test(text)) throw this.#refusal('has a Unicode noncharacter')
    if (!isPlainLine(text))
      throw this.#refusal('has a line break, a control, text-direction or invisible character, or a pile of marks')
  }

  #checkNumber(value: number): void {
    // All doubles from here on are integers.
    if (Math.abs(value) > Number.MAX_SAFE_INTEGER) throw this.#refusal('has a number beyond 2^53-1 (send a string)')
    if (decimal(this.#token) !== decimal(String(value))) {
      throw this.#refusal('has a number with more digits than a double keeps (send a string)')
    }
  }

  #parsed(): unknown {
    try {
      return JSON.parse(this.#token)
    } catch {
      throw this.#malformed()
    }
  }

  #require(sign: string): void {
    if (!this.#take(sign)) throw this.#malformed()
  }

  /** Goes past the token if it is this one. */
  #take(sign: string): boolean {
    if (this.#token !== sign) return false
    this.#advance()
    return true
  }

  #advance(): void {
    nextToken.lastIndex = this.#at + this.#token.length
    this.#token = nextToken.exec(this.#text)?.[1] ?? ''
    this.#at = nextToken.lastIndex - this.#token.length
  }

  #malformed(): CountersignError {
    return this.#refusal('is not valid JSON')
  }

  /** Says where, but quotes nothing: a payload can be secret. */
  #refusal(what: string): CountersignError {
    return refusal(`${what}, at ${this.#at === this.#text.length ? 'its end' : `character ${this.#at + 1}`}`)
  }
}

/** Canonical text of a decimal number. */
function decimal(number: string): string {
  const [, sign, whole, fraction = '', exponent = '0'] = /^(-?)(\d+)(?:\.(\d+))?(?:e(.+))?$/i.exec(number) ?? []
  const digits = `${whole}${fraction}`.replace(/^0+/, '')
  // The lookbehind keeps a long row of zeros in the middle from being tried once for each of them.
  const significant = digits.replace(/(?<!0)0+$/, '')
  if (significant === '') return '0'
  return `${sign}${significant}e${Number(exponent) - fraction.length + digits.length - significant.length}`
}
