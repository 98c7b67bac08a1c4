import {
  type DescField,
  type DescMessage,
  getOption,
  hasOption,
  isFieldSet,
  type MessageShape,
} from '@bufbuild/protobuf'
import {
  EnumRulesSchema,
  type FieldRules,
  FieldRulesSchema,
  field as fieldOption,
  message as messageOption,
  oneof as oneofOption,
  type StringRules,
  StringRulesSchema,
} from '@bufbuild/protovalidate/gen/buf/validate/validate_pb.js'

/** Whether a text fits a pattern of the schema. */
export type MatchPattern = (pattern: string, text: string) => boolean

/** Whether a value is certainly within the rules. `false` says nothing. */
type Surely = (value: unknown) => boolean

type Values = Readonly<Record<string, unknown>>

const never: Surely = () => false

/**
 * Makes a check that says of most valid messages at once that they are. It knows the rules that nearly all fields have: what is
 * required, a text's length and pattern, an enum's values. `false` says nothing: such a message is for protovalidate, which knows
 * all rules, and what to say of one that is broken. That takes several times as long.
 */
export function surelyValid<M extends DescMessage>(
  schema: M,
  match: MatchPattern,
): (message: MessageShape<M>) => boolean {
  return messageCheck(schema, match) as (message: MessageShape<M>) => boolean
}

function messageCheck(schema: DescMessage, match: MatchPattern): Surely {
  const hasOwnRules = hasOption(schema, messageOption) || schema.oneofs.some((oneof) => hasOption(oneof, oneofOption))
  // Those of google.protobuf stand for other values than their fields, and one of them can contain itself.
  if (hasOwnRules || schema.typeName.startsWith('google.protobuf.')) return never
  const fields = schema.fields.flatMap((field) => {
    const check = fieldCheck(field, match)
    return check === undefined ? [] : [{ name: field.localName, check }]
  })
  return (message) => {
    for (const { name, check } of fields) if (!check((message as Values)[name])) return false
    return true
  }
}

/** The check of a field; `undefined` if it needs none. */
function fieldCheck(field: DescField, match: MatchPattern): Surely | undefined {
  const rules = getOption(field, fieldOption)
  if (field.oneof !== undefined || !hasOnly(FieldRulesSchema, rules, fieldRules)) return never
  const check = valueCheck(field, rules, match)
  if (!rules.required) return check && ((value) => value === undefined || check(value))
  if (field.fieldKind === 'scalar' || check === undefined) return never
  return (value) => value !== undefined && value !== 0 && check(value)
}

/** Rules of fields that are known here. */
const fieldRules: readonly string[] = ['required', 'string', 'enum']

/** The check of a field's value; `undefined` if it needs none. */
function valueCheck(field: DescField, { type }: FieldRules, match: MatchPattern): Surely | undefined {
  if (field.fieldKind === 'message') return type.case === undefined ? messageCheck(field.message, match) : never
  if (field.fieldKind === 'map' || (field.fieldKind === 'list' && field.listKind === 'message')) return never
  if (type.case === undefined) return undefined
  if (field.fieldKind === 'scalar' && type.case === 'string') return textCheck(type.value, match)
  if (field.fieldKind !== 'enum' || type.case !== 'enum') return never
  const known = new Set<unknown>(field.enum.values.map(({ number }) => number))
  return hasOnly(EnumRulesSchema, type.value, ['definedOnly']) ? (value) => known.has(value) : never
}

/** Rules of text that are known here. */
const textRules: readonly string[] = ['minLen', 'maxLen', 'pattern']

function textCheck(rules: StringRules, match: MatchPattern): Surely {
  if (!hasOnly(StringRulesSchema, rules, textRules)) return never
  const { pattern } = rules
  const least = Number(rules.minLen)
  const most = isFieldSet(rules, StringRulesSchema.field.maxLen) ? Number(rules.maxLen) : Number.POSITIVE_INFINITY
  return (value) => {
    const text = value as string
    // The rules count code points. A text has at most as many as it has UTF-16 units, and at least half as many.
    return text.length <= most && text.length >= 2 * least - 1 && (pattern === '' || match(pattern, text))
  }
}

/** Whether rules are none but those that are named. */
function hasOnly<M extends DescMessage>(schema: M, rules: MessageShape<M>, names: readonly string[]): boolean {
  // Rules of one's own are extensions, which are kept like unknown fields.
  if (rules.$unknown !== undefined && rules.$unknown.length > 0) return false
  return schema.fields.every((rule) => names.includes(rule.localName) || !isFieldSet(rules, rule))
}
