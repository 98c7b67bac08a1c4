import type { DescField } from '@bufbuild/protobuf'
import { rulesOf } from '../../src/rpc/rules.ts'
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
  const { required, kind, rules } = rulesOf(field)
  const refusesEmpty = hasNoPresence(field) && kind === 'string' && refusesEmptyText(rules)
  const texts = [...rules].map(([name, value]) => {
    const word = words[name]
    if (word === undefined) {
      throw new Error(`There are no words for the rule ${name} of ${field}: add them to scripts/docs/field-rules.ts`)
    }
    return word(value)
  })
  const text = [lengthOf(rules), ...texts].filter((each) => each !== '').join(', ')
  return { required: required || refusesEmpty, text }
}

/** google.protobuf.FeatureSet.FieldPresence.IMPLICIT: a field that always has a value. */
const implicitPresence = 2

/** Whether an absent field counts as an empty one. */
export function hasNoPresence(field: DescField): boolean {
  return field.presence === implicitPresence
}

type Rules = ReturnType<typeof rulesOf>['rules']

function refusesEmptyText(rules: Rules): boolean {
  return rules.has('min_len') || !new RegExp(String(rules.get('pattern') ?? '')).test('')
}

/** What a rule says, by its name. */
const words: Readonly<Record<string, (value: string | number) => string>> = {
  min_len: () => '',
  max_len: () => '',
  max_bytes: (bytes) => `at most ${bytes} bytes`,
  pattern: (pattern) => code(String(pattern)),
  not_contains: (text) => `no ${code(String(text))}`,
  ip: () => 'an IP address',
  defined_only: () => '',
  gte: (value) => `at least ${value}`,
  lte: (value) => `at most ${value}`,
}

/** The bounds of a text's length, which are two rules. */
function lengthOf(rules: Rules): string {
  const [least, most] = [rules.get('min_len'), rules.get('max_len')]
  if (most === undefined) return least === undefined ? '' : `at least ${least} characters`
  return least === undefined ? `at most ${most} characters` : `${least} to ${most} characters`
}
