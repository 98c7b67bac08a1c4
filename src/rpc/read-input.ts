import {
  type DescField,
  type DescMessage,
  fromJson,
  type JsonObject,
  type JsonValue,
  type MessageShape,
  ScalarType,
} from '@bufbuild/protobuf'
import { isFieldError } from '@bufbuild/protobuf/reflect'
import { CountersignError } from '../shared/errors.ts'
import { pathText, RulesBroken, type Violation, violationsOf } from './rules.ts'

const utf8 = new TextDecoder()

/** Reads JSON text. INVALID_REQUEST if it is not JSON. */
export function parseJson(bytes: Uint8Array): JsonValue {
  try {
    return JSON.parse(utf8.decode(bytes)) as JsonValue
  } catch (cause) {
    throw invalidJson(cause)
  }
}

function invalidJson(cause: unknown): CountersignError {
  return new CountersignError('INVALID_REQUEST', 'The body is not valid JSON', { cause })
}

/** Reads a request's message from parsed JSON. Fields that the schema does not know are ignored. */
export function inputFromJson<I extends DescMessage>(schema: I, json: JsonObject): MessageShape<I> {
  try {
    return fromJson(schema, json, { ignoreUnknownFields: true })
  } catch (cause) {
    throw undecodable(schema, cause)
  }
}

/**
 * The refusal of a request whose message does not decode. Names the field that does not fit and quotes no input,
 * because that can contain a token.
 */
export function undecodable({ typeName }: DescMessage, cause: unknown): CountersignError {
  const inner = (cause as Error).cause
  if (inner instanceof SyntaxError) return invalidJson(cause)
  const field = isFieldError(inner) ? inner.field() : undefined
  if (field === undefined || field.kind === 'oneof') {
    const metadata = { type: typeName }
    return new CountersignError('INVALID_REQUEST', `The body does not decode as ${typeName}`, { metadata, cause })
  }
  const { name } = field
  return new CountersignError('INVALID_REQUEST', `${name} must be ${typeOf(field)}`, {
    metadata: { field: name },
    cause,
  })
}

/** Accepted JSON of a field, in words. */
function typeOf(field: DescField): string {
  // Callers tend to send the object itself in place of its text.
  if (field.name === 'payload') return 'a string with JSON in it'
  if (field.fieldKind === 'list') return 'a list'
  if (field.fieldKind === 'enum') return 'one of its words'
  if (field.fieldKind !== 'scalar') return 'an object'
  if (field.scalar === ScalarType.STRING) return 'a string'
  return field.scalar === ScalarType.BOOL ? 'true or false' : 'a whole number'
}

/** Meaning of each pattern in the schema. */
export const patternWords: Readonly<Record<string, string>> = {
  '^[!-~]{1,200}$': '1 to 200 printable ASCII characters without spaces',
  '^[A-Za-z0-9+/=_:.-]{1,200}$': '1 to 200 letters, digits and signs of + / = _ : . -',
  '^[A-Za-z0-9:_-]{1,64}$': '1 to 64 letters, digits, colons, underscores and hyphens',
  '^[A-Za-z0-9_-]{1,64}$': '1 to 64 letters, digits, underscores and hyphens',
  '^[A-Za-z0-9_-]{122}$': '122 characters of base64url',
  '^[A-Za-z0-9_-]{22,128}$': '22 to 128 letters, digits, underscores and hyphens',
  '^[A-Za-z0-9_-]{86}$': '86 characters of base64url',
  '^[a-z0-9][a-z0-9-]{0,31}$': '1 to 32 small letters, digits and hyphens',
  '^([0-9a-fA-F]{2})*$': 'hex',
}

/** The broken rules of a message, in words. */
function brokenRules(violations: readonly Violation[]): string {
  return violations.map((violation) => `${pathText(violation.field)} ${brokenRule(violation)}`).join('; ')
}

function brokenRule({ ruleId, message, value }: Violation): string {
  if (ruleId === 'required' || (ruleId === 'string.pattern' && value === '')) return 'is missing'
  const words = patternWords[/`(.*)`/.exec(message)?.[1] ?? '']
  return words === undefined ? message.replace(/^value /, '') : `must be ${words}`
}

const orderTokens: ReadonlySet<string> = new Set(['claim_token', 'challenge_token', 'desktop_token'])

/**
 * Refuses a message that breaks the rules of the schema: INVALID_REQUEST, whose cause is {@link RulesBroken} with all
 * of them. ORDER_TOKEN_INVALID without the token that the call takes.
 */
export function requireValid<I extends DescMessage>(schema: I, input: MessageShape<I>): void {
  const violations = violationsOf(schema, input)
  if (violations.length > 0) {
    const names = violations.flatMap(({ field }) => field.at(-1)?.name ?? [])
    throw new CountersignError('INVALID_REQUEST', brokenRules(violations), {
      metadata: { field: [...new Set(names)].join(', ') },
      cause: new RulesBroken(violations),
    })
  }
  const values = input as unknown as Readonly<Record<string, unknown>>
  const missing = schema.fields.find(({ name, localName }) => orderTokens.has(name) && values[localName] === '')
  if (missing !== undefined) {
    throw new CountersignError('ORDER_TOKEN_INVALID', `The ${missing.name.replace('_', ' ')} is missing`)
  }
}
