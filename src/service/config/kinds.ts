import { isDocumentPrefix } from '../../base/document-address.ts'
import { isObject } from '../../base/json-file.ts'
import { defaultLimits, type LimitName, type Limits, limitRange } from '../../limits/limits.ts'
import { isWebhookSecret } from '../../observe/audit/webhook-form.ts'
import { isLoopbackHost, parseOrigin } from '../../shared/origin.ts'
import { isPlainLine } from '../../shared/plain-line.ts'

/** What kind of value an option takes: how it is read from text, checked, and described. */
export interface Kind<Given, Resolved = Given> {
  /** Type of what it is given, in TypeScript. */
  readonly type: string
  /** Completes the sentence "{option} must be …" of a refusal. */
  readonly expected: string
  /**
   * Returns the value in the form that the service uses, or refuses it. The type is what the caller promises, not what
   * comes in: JavaScript and environment variables pass anything.
   */
  readonly check: (value: Given, refuse: Refuse) => Resolved
  /**
   * Makes a value of an environment variable's text; without it, the text is the value. Text that makes no sense is
   * returned unchanged, for `check` to refuse.
   */
  readonly read?: (text: string) => unknown
  /** Smallest and largest number, if the kind has them. */
  readonly range?: Range
  /** All values, if they can be listed. */
  readonly choices?: readonly string[]
}

/** Throws the refusal of a value. `got` is what the message repeats; without it, the message repeats nothing. */
export type Refuse = (got?: unknown) => never

/** Smallest and largest number, both allowed. */
export interface Range {
  readonly min: number
  readonly max: number
}

/** A whole number within bounds. */
export function integer(min: number, max: number): Kind<number> {
  return {
    type: 'number',
    expected: `a whole number from ${min} to ${max}`,
    check: (value, refuse) => (isWhole(value, min, max) ? value : refuse(value)),
    read: readNumber,
    range: { min, max },
  }
}

/** A number of things, or true for one and false for none. */
export function count(max: number): Kind<boolean | number, number> {
  return {
    type: 'boolean | number',
    expected: `a whole number from 0 to ${max}, true or false (on or off)`,
    check(value, refuse) {
      if (typeof value === 'boolean') return value ? 1 : 0
      return isWhole(value, 0, max) ? value : refuse(value)
    },
    read(text) {
      const number = readNumber(text)
      return typeof number === 'number' ? number : readFlag(text)
    },
    range: { min: 0, max },
  }
}

/** True or false; `on` and `off` in variables. */
export const flag: Kind<boolean> = {
  type: 'boolean',
  expected: 'true or false (on or off)',
  check: (value, refuse) => (typeof value === 'boolean' ? value : refuse(value)),
  read: readFlag,
}

/** One of a few words. */
export function choice<Choice extends string>(...choices: readonly Choice[]): Kind<Choice> {
  return {
    type: quoted(choices),
    expected: `${choices.slice(0, -1).join(', ')} or ${choices.at(-1)}`,
    check: (value, refuse) => choices.find((one) => one === value) ?? refuse(value),
    choices,
  }
}

/** Text of a form. */
export function text(pattern: RegExp, expected: string): Kind<string> {
  return textThat((value) => pattern.test(value), expected)
}

/** Text that passes a test. */
function textThat(fits: (value: string) => boolean, expected: string): Kind<string> {
  return {
    type: 'string',
    expected,
    check: (value, refuse) => (typeof value === 'string' && fits(value) ? value : refuse(value)),
  }
}

/** One line of text that can stand in a challenge. */
export function line(maxLength: number): Kind<string> {
  return textThat(
    (value) => value !== '' && value.length <= maxLength && value.trim() === value && isPlainLine(value),
    `one line of 1 to ${maxLength} characters, without spaces around it or control characters`,
  )
}

/** A path that others are appended to. */
export const path: Kind<string> = text(
  /^(\/[A-Za-z0-9._~-]+)+$/,
  'a path such as /api/auth, without a slash at the end',
)

/** The path of a file, which is read where it is used. */
export const file: Kind<string> = text(/^[^\s\0](.*[^\s\0])?$/, 'the path of a file')

/** A host to listen on. */
export const hostName: Kind<string> = text(/^[A-Za-z0-9.:_-]{1,253}$/, 'a host name or address')

/** An http or https origin, in its canonical form. */
export const httpOrigin: Kind<string> = {
  type: 'string',
  expected: 'an http or https address without a path, such as https://auth.example',
  check(value, refuse) {
    const origin = originOf(value)
    return origin !== undefined && /^https?:/.test(origin) ? origin : refuse(value)
  },
}

/** Origins of any scheme, in their canonical form. */
export const origins: Kind<readonly string[]> = {
  type: 'readonly string[]',
  expected: 'a list of origins such as https://app.example',
  check(value, refuse) {
    if (!Array.isArray(value)) return refuse(value)
    return value.map((entry: unknown) => originOf(entry) ?? refuse(entry))
  },
  read: readList,
}

/** One or several secrets, each of a minimum length. A refusal never repeats them. */
export function secrets(minLength: number): Kind<string | readonly string[], readonly string[]> {
  return secretTexts(
    `text of ${minLength} characters or more, such as the output of: openssl rand -base64 32`,
    (text) => text.length >= minLength,
  )
}

/** One secret or several. A refusal never repeats them. */
function secretTexts(
  expected: string,
  fits: (text: string) => boolean,
): Kind<string | readonly string[], readonly string[]> {
  return {
    type: 'string | readonly string[]',
    expected,
    check(value, refuse) {
      const entries: readonly unknown[] = Array.isArray(value) ? value : [value]
      const good = entries.filter((entry) => typeof entry === 'string' && fits(entry))
      return good.length > 0 && good.length === entries.length ? (good as string[]) : refuse()
    },
    read: readList,
  }
}

/** A list of keys for `Authorization: Bearer`, each of a minimum length. A refusal never repeats them. */
export function bearerKeys(minLength: number): Kind<readonly string[]> {
  const fits = (entry: unknown): boolean =>
    typeof entry === 'string' && entry.length >= minLength && /^[!-+\--~]+$/.test(entry)
  return {
    type: 'readonly string[]',
    expected:
      `keys of ${minLength} characters or more, without spaces or commas, such as the output of: openssl ` +
      'rand -base64 32',
    check: (value, refuse) => (Array.isArray(value) && value.length > 0 && value.every(fits) ? value : refuse()),
    read: readList,
  }
}

/** A list of one or more texts that pass a test. */
function textsThat(fits: (text: string) => boolean, expected: string): Kind<readonly string[]> {
  return {
    type: 'readonly string[]',
    expected,
    check(value, refuse) {
      if (!Array.isArray(value) || value.length === 0) return refuse(value)
      const misfit = value.findIndex((entry) => typeof entry !== 'string' || !fits(entry))
      return misfit === -1 ? value : refuse(value[misfit])
    },
    read: readList,
  }
}

const differentAudiences = textsThat(
  (entry) => /^[!-+\--~]{1,200}$/.test(entry),
  'a list of different audiences, each of 1 to 200 characters without spaces or commas, such as https://api.example',
)

/** Audiences of access tokens (the `aud` of RFC 7519), none twice. */
export const audiences: Kind<readonly string[]> = {
  ...differentAudiences,
  check: (value, refuse) =>
    Array.isArray(value) && new Set(value).size < value.length
      ? refuse(value)
      : differentAudiences.check(value, refuse),
}

/** Beginnings of addresses of clients' metadata documents, whole addresses, or `*`. */
export const documentPrefixes: Kind<readonly string[]> = textsThat(
  // A star elsewhere would stand for itself.
  (entry) => entry === '*' || (!entry.includes('*') && isDocumentPrefix(entry)),
  '* or https addresses of at most 200 characters, in the spelling of the URL standard, which end in / or name one ' +
    'document, such as https://client.example/',
)

/** Addresses of JSON-RPC servers by EIP-155 chain id. They can contain keys, so a refusal repeats nothing. */
export const rpcAddresses: Kind<Readonly<Record<string, string>>> = {
  type: 'Readonly<Record<string, string>>',
  expected: 'http or https addresses by chain id, such as 1=https://rpc.example,8453=https://base.example',
  check(value, refuse) {
    if (!isObject(value)) return refuse()
    const entries = Object.entries<unknown>(value)
    // A fragment would not be sent.
    const fits = ([chainId, url]: [string, unknown]): boolean =>
      /^[1-9][0-9]{0,15}$/.test(chainId) &&
      typeof url === 'string' &&
      /^https?:\/\/[^\s#]+$/.test(url) &&
      URL.canParse(url)
    return entries.length > 0 && entries.every(fits) ? { ...value } : refuse()
  },
  read: readPairs,
}

/** Numbers of limits by name. Those that are left out keep their default. */
export const rateLimits: Kind<Partial<Limits>, Limits> = {
  type: 'Partial<Limits>',
  expected:
    `whole numbers from ${limitRange.min} to ${limitRange.max} by name, such as sign-in=240,order=1200; ` +
    `the names are ${Object.keys(defaultLimits).join(', ')}`,
  check(value, refuse) {
    if (!isObject(value)) return refuse(value)
    const given = Object.entries<unknown>(value)
    if (given.length === 0) return refuse(value)
    for (const [name, number] of given) {
      const fits = Object.hasOwn(defaultLimits, name) && isWhole(number, limitRange.min, limitRange.max)
      if (!fits) refuse(`${name}=${String(number)}`)
    }
    return { ...defaultLimits, ...(Object.fromEntries(given) as Partial<Record<LimitName, number>>) }
  },
  read(text) {
    const pairs = readPairs(text)
    if (typeof pairs === 'string') return pairs
    return Object.fromEntries(Object.entries(pairs).map(([name, number]) => [name, readNumber(number ?? '')]))
  },
}

/** Where webhooks are sent to. It can contain a key, so a refusal repeats nothing. */
export const webhookAddress: Kind<string> = {
  type: 'string',
  expected: 'an https address, or an http address of this machine',
  check(value, refuse) {
    const url = typeof value === 'string' ? URL.parse(value) : null
    if (url === null || url.hash !== '') return refuse()
    const safe = url.protocol === 'https:' || (url.protocol === 'http:' && isLoopbackHost(url.hostname))
    // fetch takes no credentials in an address.
    return safe && url.username === '' && url.password === '' ? url.href : refuse()
  },
}

/** Secrets of Standard Webhooks. A refusal never repeats them. */
export const webhookSecrets: Kind<string | readonly string[], readonly string[]> = secretTexts(
  'whsec_ and 24 to 64 bytes in base64, such as the output of: echo "whsec_$(openssl rand -base64 32)"',
  isWebhookSecret,
)

/** The address of an image that a page shows: https, or a path on the page's own origin. */
export const imageAddress: Kind<string> = textThat(
  (value) =>
    /^(https:\/\/[^\s"'<>;,\\]+|\/(?!\/)[^\s"'<>;,\\]*)$/.test(value) && URL.canParse(value, 'https://a.example'),
  'an https address, or a path that begins with one slash, without spaces, quotes, commas or semicolons',
)

/** A colour in CSS's hexadecimal form. */
export const colour: Kind<string> = text(/^#([0-9a-f]{3}|[0-9a-f]{6})$/i, 'a colour such as #1f6feb')

/** A list whose entries are checked where they are used. */
export function list<Entry>(type: string, expected: string): Kind<readonly Entry[]> {
  return {
    type: `readonly ${type}[]`,
    expected,
    check: (value, refuse) => (Array.isArray(value) ? value : refuse(value)),
    read: readList,
  }
}

/** A template of the claim URL. */
export const claimUrlTemplate: Kind<string> = textThat((value) => {
  const hash = value.indexOf('#')
  const filled = value.replaceAll('{origin}', 'https://a.example').replaceAll(/\{(orderId|claimToken)\}/g, 'x')
  return (
    hash > 0 &&
    value.includes('{orderId}') &&
    value.indexOf('{claimToken}') > hash &&
    URL.canParse(filled) &&
    !/[{}]/.test(filled)
  )
}, 'an address with {orderId} and, after a #, {claimToken}, such as {origin}/c/{orderId}#token={claimToken}')

/** A function, of a type of this name. */
export function hook<Hook>(type: string): Kind<Hook> {
  return {
    type,
    expected: 'a function',
    check: (value, refuse) => (typeof value === 'function' ? value : refuse()),
  }
}

/** An object with these methods, of a type of this name. */
export function objectWith<Value>(
  type: string,
  methods: readonly (keyof Value & string)[],
  expected: string,
): Kind<Value> {
  return {
    type,
    expected,
    check: (value, refuse) => (hasMethods(value, methods) ? value : refuse()),
  }
}

/** Text of a form, or what another kind takes. A refusal does not repeat the text: it can hold a password. */
export function textOr<Value extends object>(
  pattern: RegExp,
  other: Kind<Value>,
  expected: string,
): Kind<string | Value> {
  return {
    type: `string | ${other.type}`,
    expected,
    check: (value, refuse) =>
      typeof value === 'string' ? (pattern.test(value) ? value : refuse()) : other.check(value, () => refuse()),
  }
}

/** One of a few words, or in code what another kind takes. */
export function choiceOr<Choice extends string, Value extends object>(
  choices: readonly Choice[],
  other: Kind<Value>,
  expected: string,
): Kind<Choice | Value> {
  return {
    type: `${quoted(choices)} | ${other.type}`,
    expected,
    check(value, refuse) {
      if (typeof value === 'string') return choices.find((one) => one === value) ?? refuse(value)
      return other.check(value, () => refuse(value))
    },
    choices,
  }
}

function quoted(words: readonly string[]): string {
  return words.map((word) => `'${word}'`).join(' | ')
}

function hasMethods<Value>(value: Value, methods: readonly (keyof Value & string)[]): boolean {
  return methods.every((name) => typeof value?.[name] === 'function')
}

function isWhole(value: unknown, min: number, max: number): boolean {
  return typeof value === 'number' && Number.isInteger(value) && value >= min && value <= max
}

/** The canonical origin of an address, with or without a slash at the end. */
function originOf(value: unknown): string | undefined {
  return typeof value === 'string' ? parseOrigin(value.replace(/\/$/, '')) : undefined
}

/** Pairs such as `a=1,b=2`; the text itself if a name comes twice. */
function readPairs(text: string): string | Record<string, string | undefined> {
  const pairs = readList(text).map((entry) => entry.split(/=(.*)/s).slice(0, 2))
  const isTwice = new Set(pairs.map(([name]) => name)).size < pairs.length
  return isTwice ? text : Object.fromEntries(pairs)
}

function readList(text: string): string[] {
  return text.split(',').map((entry) => entry.trim())
}

function readNumber(text: string): number | string {
  return /^-?\d+(\.\d+)?$/.test(text) ? Number(text) : text
}

function readFlag(text: string): boolean | string {
  if (/^(true|on|yes|1)$/i.test(text)) return true
  return /^(false|off|no|0)$/i.test(text) ? false : text
}
