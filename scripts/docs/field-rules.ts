import { type DescField, type DescMessage, getOption, hasOption, type MessageShape } from '@bufbuild/protobuf'
import { reflect } from '@bufbuild/protobuf/reflect'
import {
  EnumRulesSchema,
  type FieldRules,
  field as fieldOption,
  type StringRules,
  StringRulesSchema,
  UInt32RulesSchema,
} from '@bufbuild/protovalidate/gen/buf/validate/validate_pb.js'
import { code } from './markdown.ts'

/** What buf.validate demands of a field. */
export interface FieldBounds {
  /** Whether a message without the field is refused. */
  readonly required: boolean
  /** The other rules in words; empty if there are none. */
  readonly text: string
}

/** Reads the rules of a field. Throws if there is one that has no words here. */
export function boundsOf(field: DescField): FieldBounds {
  if (!hasOption(field, fieldOption)) return { required: false, text: '' }
  const rules = getOption(field, fieldOption)
  const { type } = rules
  const refusesEmpty = hasNoPresence(field) && type.case === 'string' && refusesEmptyText(type.value)
  return { required: rules.required || refusesEmpty, text: typeBounds(rules).join(', ') }
}

/** google.protobuf.FeatureSet.FieldPresence.IMPLICIT: a field that always has a value. */
const implicitPresence = 2

/** Whether an absent field counts as an empty one. */
export function hasNoPresence(field: DescField): boolean {
  return field.presence === implicitPresence
}

function refusesEmptyText({ minLen, pattern }: StringRules): boolean {
  return minLen > 0n || !new RegExp(pattern).test('')
}

function typeBounds({ type }: FieldRules): string[] {
  switch (type.case) {
    case undefined:
      return []
    case 'string':
      return [lengthOf(type.value), ...wordsOf(StringRulesSchema, type.value, stringWords)].filter(
        (text) => text !== '',
      )
    case 'uint32':
      return wordsOf(UInt32RulesSchema, type.value, numberWords)
    case 'enum':
      return wordsOf(EnumRulesSchema, type.value, { definedOnly: () => '' })
    default:
      throw new Error(
        `There are no words for the rules ${type.case} of buf.validate: add them to scripts/docs/field-rules.ts`,
      )
  }
}

/** What a rule says, by the rule's name. */
type Words = Readonly<Record<string, (value: unknown) => string>>

const stringWords: Words = {
  minLen: () => '',
  maxLen: () => '',
  maxBytes: (bytes) => `at most ${bytes} bytes`,
  pattern: (pattern) => code(String(pattern)),
  notContains: (text) => `no ${code(String(text))}`,
  ip: () => 'an IP address',
}

const numberWords: Words = {
  gte: (value) => `at least ${value}`,
  lte: (value) => `at most ${value}`,
}

/** The bounds of a text's length, which are two rules. */
function lengthOf({ minLen, maxLen }: StringRules): string {
  if (maxLen === 0n) return minLen === 0n ? '' : `at least ${minLen} characters`
  return minLen === 0n ? `at most ${maxLen} characters` : `${minLen} to ${maxLen} characters`
}

function wordsOf<Desc extends DescMessage>(schema: Desc, rules: MessageShape<Desc>, words: Words): string[] {
  const message = reflect(schema, rules)
  return message.fields
    .filter((rule) => message.isSet(rule))
    .map((rule) => {
      const word = words[rule.localName]
      if (word === undefined) {
        throw new Error(
          `There are no words for the rule ${rule} of buf.validate: add them to scripts/docs/field-rules.ts`,
        )
      }
      return word(message.get(rule))
    })
}
