import { isIP } from 'node:net'
import {
  create,
  type DescField,
  type DescMessage,
  getOption,
  hasOption,
  isFieldSet,
  type Message,
  type MessageInitShape,
} from '@bufbuild/protobuf'
import { reflect } from '@bufbuild/protobuf/reflect'
import {
  EnumRulesSchema,
  type FieldPathElementSchema,
  FieldRulesSchema,
  field as fieldOption,
  message as messageOption,
  StringRulesSchema,
  UInt32RulesSchema,
  type Violations,
  ViolationsSchema,
} from '../../gen/server/buf/validate/validate_pb.ts'

/** The rules of a field by their names in buf.validate, such as `max_len`, in its order. */
export interface FieldRules {
  readonly required: boolean
  /** What kind of value they are for; `undefined` if there are none. */
  readonly kind: 'string' | 'uint32' | 'enum' | undefined
  readonly rules: ReadonlyMap<string, string | number>
}

const kinds = { string: StringRulesSchema, uint32: UInt32RulesSchema, enum: EnumRulesSchema } as const

/**
 * Reads the rules of a field from its descriptor. Throws if they are of a kind that is unknown here, such as
 * expressions in CEL.
 */
export function rulesOf(field: DescField): FieldRules {
  if (!hasOption(field, fieldOption)) return { required: false, kind: undefined, rules: new Map() }
  const option = getOption(field, fieldOption)
  const set = reflect(FieldRulesSchema, option).fields.filter((rule) => isFieldSet(option, rule))
  const { required, type } = option
  const unknown = set.find(({ name }) => name !== 'required' && !(name in kinds))
  if (unknown !== undefined)
    throw new Error(`${field} has the rules ${unknown.name} of buf.validate, which are unknown`)
  if (field.fieldKind === 'list' || field.fieldKind === 'map' || field.oneof !== undefined) {
    throw new Error(`${field} is in a oneof, a list or a map, for which rules are unknown`)
  }
  const { case: kind, value } = type as { case?: keyof typeof kinds; value?: Message }
  if (kind === undefined) return { required, kind, rules: new Map() }
  if (value?.$unknown !== undefined) throw new Error(`${field} has rules of its own making, which are unknown`)
  const rules = reflect(kinds[kind], value as never)
  const named = rules.fields
    .filter((rule) => rules.isSet(rule))
    .map((rule) => [rule.name, plain(rules.get(rule))] as const)
  return { required, kind, rules: new Map(named) }
}

/** Lengths are 64-bit integers. */
function plain(value: unknown): string | number {
  return typeof value === 'string' ? value : Number(value)
}

/** A check of one rule. */
interface Rule {
  readonly breaks: (value: never) => boolean
  /** What the rule demands, as protovalidate words it. */
  readonly words: string
}

const stringRules: Readonly<Record<string, (bound: never) => Rule>> = {
  min_len: (least: number) => ({
    breaks: (text: string) => text.length < 2 * least && codePoints(text) < least,
    words: `must be at least ${least} characters`,
  }),
  max_len: (most: number) => ({
    breaks: (text: string) => text.length > most && codePoints(text) > most,
    words: `must be at most ${most} characters`,
  }),
  max_bytes: (most: number) => ({
    breaks: (text: string) => 3 * text.length > most && utf8.encode(text).length > most,
    words: `must be at most ${most} bytes`,
  }),
  pattern: (pattern: string) => {
    const form = new RegExp(requirePlain(pattern), 'u')
    return { breaks: (text: string) => !form.test(text), words: `does not match regex pattern \`${pattern}\`` }
  },
  not_contains: (part: string) => ({
    breaks: (text: string) => text.includes(part),
    words: `contains substring \`${part}\``,
  }),
  ip: () => ({ breaks: (text: string) => isIP(text) === 0, words: 'must be a valid IP address' }),
}

/** Words of the rule `ip` for an empty text, which is a rule id of its own. */
const emptyIp = 'value is empty, which is not a valid IP address'

const utf8 = new TextEncoder()

function codePoints(text: string): number {
  let count = 0
  for (const _ of text) count++
  return count
}

/** Classes one after another, of which one at most has a count: any engine decides them alike, in linear time. */
const plainPattern = /^\^(\[[^\]\\^]+\])*\[[^\]\\^]+\](\{\d+(,\d+)?\})?\$$/

function requirePlain(pattern: string): string {
  if (plainPattern.test(pattern) || pattern === '^([0-9a-fA-F]{2})*$') return pattern
  throw new Error(`the pattern ${pattern} is more than one class with a count`)
}

/** A broken rule, as protovalidate reports it. */
export interface Violation {
  /** Path to the field; empty for a rule of the whole message. */
  readonly field: readonly DescField[]
  /** Path to the rule in `buf.validate.FieldRules`. */
  readonly rule: readonly DescField[]
  /** Such as `string.max_len`. */
  readonly ruleId: string
  readonly message: string
  /** The value that breaks the rule. */
  readonly value?: unknown
}

/** A check of a message: adds the rules that it breaks. `path` leads to the message. */
type Check = (message: Message, path: readonly DescField[], broken: Violation[]) => void

const checks = new Map<DescMessage, readonly Check[]>()

/**
 * The rules of a message's schema that a message breaks, in the order of protovalidate; usually none. They are read at
 * the first call for a schema: throws if one is unknown.
 */
export function violationsOf(schema: DescMessage, message: Message): readonly Violation[] {
  const broken: Violation[] = []
  for (const check of checksOf(schema)) check(message, [], broken)
  return broken
}

/** Reads the rules of a schema, at the start. Throws if one is unknown. */
export function requireKnownRules(schema: DescMessage): void {
  checksOf(schema)
}

function checksOf(schema: DescMessage): readonly Check[] {
  const known = checks.get(schema)
  if (known !== undefined) return known
  const found: Check[] = []
  // Before they are read, because a message can contain one of its own kind.
  checks.set(schema, found)
  try {
    readChecks(schema, found)
  } catch (error) {
    checks.delete(schema)
    throw error
  }
  return found
}

function readChecks(schema: DescMessage, found: Check[]): void {
  const { cel, celExpression, oneof } = getOption(schema, messageOption)
  if (cel.length + celExpression.length > 0) throw new Error(`${schema} has rules in CEL, which are unknown`)
  if (schema.oneofs.some(({ proto }) => proto.options?.$unknown !== undefined)) {
    throw new Error(`${schema} has rules for a oneof, which are unknown`)
  }
  const alternatives = new Set(oneof.flatMap(({ fields }) => fields))
  found.push(...schema.fields.flatMap((field) => fieldChecks(field, alternatives.has(field.name))))
  for (const { fields: names, required } of oneof) {
    const fields = names.map((name) => schema.fields.find((field) => field.name === name) as DescField)
    const listed = names.join(', ')
    found.push((message, path, broken) => {
      const count = fields.filter((field) => isFieldSet(message, field)).length
      const words = count > 1 ? `only one of ${listed} can be set` : `one of ${listed} must be set`
      if (count > 1 || (required && count === 0)) {
        broken.push({ field: path, rule: [], ruleId: 'message.oneof', message: words })
      }
    })
  }
}

/** google.protobuf.FeatureSet.FieldPresence.IMPLICIT: a field that always has a value. */
const implicitPresence = 2

/** Checks of a field. An `alternative` is one of several of which a rule of the message wants one. */
function fieldChecks(field: DescField, isAlternative: boolean): Check[] {
  const { required, kind, rules } = rulesOf(field)
  const found: Check[] = []
  if (required) {
    const rule = [FieldRulesSchema.field.required]
    found.push((message, path, broken) => {
      if (isFieldSet(message, field)) return
      broken.push({ field: [...path, field], rule, ruleId: 'required', message: 'value is required' })
    })
  }
  const isAlwaysSet = field.presence === implicitPresence && !required && !isAlternative
  const of = (message: Message): unknown => (message as unknown as Record<string, unknown>)[field.localName]
  for (const { names, breaks, words } of kind === undefined ? [] : boundsOf(field, kind, rules)) {
    const inKind = kinds[kind as keyof typeof kinds].fields.find(({ name }) => name === names[0]) as DescField
    const rule = [FieldRulesSchema.fields.find(({ name }) => name === kind) as DescField, inKind]
    found.push((message, path, broken) => {
      if (!isAlwaysSet && !isFieldSet(message, field)) return
      const value = of(message)
      if (!breaks(value as never)) return
      const ruleId = `${kind}.${names.join('_')}`
      const isEmptyIp = ruleId === 'string.ip' && value === ''
      const report = isEmptyIp ? { ruleId: 'string.ip_empty', message: emptyIp } : { ruleId, message: words }
      broken.push({ field: [...path, field], rule, value, ...report })
    })
  }
  if (field.fieldKind === 'message') {
    const inner = checksOf(field.message)
    found.push((message, path, broken) => {
      if (isFieldSet(message, field)) for (const check of inner) check(of(message) as Message, [...path, field], broken)
    })
  } else if (field.message !== undefined && checksOf(field.message).length > 0) {
    throw new Error(`${field} is a list or a map of messages with rules, which are unknown`)
  }
  return found
}

/** The rules of a value, each with the names of what it is made of. */
function boundsOf(
  field: DescField,
  kind: keyof typeof kinds,
  rules: FieldRules['rules'],
): (Rule & { readonly names: readonly string[] })[] {
  if (kind === 'uint32') return [rangeOf(field, rules)]
  return [...rules].map(([name, bound]) => {
    if (kind === 'enum' && name === 'defined_only' && field.fieldKind === 'enum') {
      const numbers = new Set(field.enum.values.map(({ number }) => number))
      const words = 'value must be one of the defined enum values'
      return { names: [name], breaks: (value: number) => !numbers.has(value), words }
    }
    const ruleOf = kind === 'string' ? stringRules[name] : undefined
    if (ruleOf === undefined) throw new Error(`${field} has the rule ${name} of buf.validate, which is unknown`)
    return { names: [name], ...ruleOf(bound as never) }
  })
}

/** Both bounds of a number are one rule. */
function rangeOf(field: DescField, rules: FieldRules['rules']): Rule & { readonly names: readonly string[] } {
  const [least, most] = [rules.get('gte') as number, rules.get('lte') as number]
  if (rules.size !== 2 || !(least <= most)) throw new Error(`${field} must have the rules gte and lte, and no others`)
  return {
    names: ['gte', 'lte'],
    breaks: (value: number) => value < least || value > most,
    words: `must be greater than or equal to ${least} and less than or equal to ${most}`,
  }
}

/** A failed check of a message's rules. */
export class RulesBroken extends Error {
  override readonly name = 'RulesBroken'
  readonly violations: readonly Violation[]

  constructor(violations: readonly Violation[]) {
    super(violations.map(({ field, message, ruleId }) => `${pathText(field)}: ${message} [${ruleId}]`).join(', '))
    this.violations = violations
  }
}

/** A path as people read it, such as `proof.nonce_id`. */
export function pathText(path: readonly DescField[]): string {
  return path.map(({ name }) => name).join('.')
}

/** The broken rules as a detail of an error. */
export function violationsMessage(violations: readonly Violation[]): Violations {
  return create(ViolationsSchema, {
    violations: violations.map(({ field, rule, ruleId, message }) => ({
      ...(field.length === 0 ? {} : { field: pathMessage(field) }),
      ...(rule.length === 0 ? {} : { rule: pathMessage(rule) }),
      ruleId,
      message,
      forKey: false,
    })),
  })
}

type Element = MessageInitShape<typeof FieldPathElementSchema>

function pathMessage(path: readonly DescField[]): { elements: Element[] } {
  return {
    elements: path.map(({ name, number, proto }) => ({ fieldName: name, fieldNumber: number, fieldType: proto.type })),
  }
}
