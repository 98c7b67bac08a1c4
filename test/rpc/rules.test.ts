import {
  create,
  createFileRegistry,
  type DescField,
  type DescMessage,
  fromJson,
  type JsonObject,
  type Message,
  type MessageInitShape,
  setExtension,
  toBinary,
} from '@bufbuild/protobuf'
import {
  FieldDescriptorProto_Label,
  FieldDescriptorProto_Type,
  type FieldDescriptorProtoSchema,
  FieldOptionsSchema,
  FileDescriptorProtoSchema,
} from '@bufbuild/protobuf/wkt'
import { createValidator, violationsToProto } from '@bufbuild/protovalidate'
import { describe, expect, test } from 'vitest'
import { FieldRulesSchema, field, ViolationsSchema } from '../../gen/server/buf/validate/validate_pb.ts'
import { requireKnownRules, rulesOf, violationsMessage, violationsOf } from '../../src/rpc/rules.ts'
import { hostileTexts, messageOf } from '../http/generated/messages.ts'
import { Random } from '../http/generated/random.ts'
import { allRpcs } from '../http/generated/rpcs.ts'

const validator = createValidator()
const methods = await allRpcs()
const seed = 7

/** How many messages kept the rules, and how many broke them. */
const seen = { kept: 0, broken: 0 }

/** Asserts that the message breaks the rules by protovalidate that it breaks by ours, to the last byte of a report. */
function compare(schema: DescMessage, message: Message): void {
  const ours = violationsOf(schema, message)
  const theirs = validator.validate(schema, message as never)
  expect(theirs.kind).not.toBe('error')
  const [report, reportSchema] = violationsToProto(theirs.kind === 'invalid' ? theirs.error.violations : [])
  const ourReport = violationsMessage(ours)
  seen[ours.length === 0 ? 'kept' : 'broken']++
  if (Buffer.compare(toBinary(ViolationsSchema, ourReport), toBinary(reportSchema, report)) === 0) return
  expect({ message, ours: ourReport }).toEqual({ message, ours: report })
  throw new Error(`reports of ${schema} are written differently`)
}

/** Texts that keep a rule and texts that break it, next to its bounds. */
function textsAt(rules: ReturnType<typeof rulesOf>['rules']): string[] {
  const lengths = ['min_len', 'max_len', 'max_bytes'].map((name) => Number(rules.get(name) ?? 0)).filter((n) => n > 0)
  const around = lengths.flatMap((length) => [length - 1, length, length + 1])
  const pattern = String(rules.get('pattern') ?? '')
  const counts = [...pattern.matchAll(/\d+(?=[,}])/g)].map(Number).flatMap((count) => [count - 1, count, count + 1])
  const letters = [...(pattern === '' ? 'x' : '!-09:=AZ_a~z+/ @`{[\x7f')]
  return [
    ...around.flatMap((length) => ['x', 'é', '€', '🦀', '\ud83e', '\udd80'].map((letter) => letter.repeat(length))),
    ...around.map((length) => `${'x'.repeat(Math.max(0, length - 1))}🦀`),
    ...counts.flatMap((count) => letters.map((letter) => letter.repeat(Math.max(0, count)))),
    ...letters.flatMap((letter) => [`a${letter}`, `${letter}a`, `aa${letter}a`]),
    ...['a\n', '\na', 'aa\n', 'ab\u2028', 'aB', 'abc', 'zz'],
  ]
}

const addresses = [
  ...['1.2.3.4', '01.2.3.4', '1.2.3', '1.2.3.256', '1.2.3.4.5', ' 1.2.3.4', '1.2.3.4 ', '1.2.3.04', '0x1.2.3.4'],
  ...['::', '::1', '1::', '1:2:3:4:5:6:7:8', '1:2:3:4:5:6:7', '1:2:3:4:5:6:7:8:9', '1::2::3', ':1', '1:', ':::'],
  ...['::ffff:1.2.3.4', '::1.2.3', '1:2:3:4:5:6:1.2.3.4', '1:2:3:4:5:6:7:1.2.3.4', 'fe80::1%eth0', 'fe80::1%', '%'],
  ...['12345::', 'g::', '[::1]', '::1/64', '1.2.3.4/8', 'FE80::ABCD', '00001::', '1:2:3:4:5:6:7::', '::2:3:4:5:6:7:8'],
]

/** Values of a field next to the bounds of its rules. */
function valuesAt(one: DescField): unknown[] {
  const { kind, rules } = rulesOf(one)
  if (one.fieldKind === 'scalar' && kind === 'uint32') {
    return [0, 2 ** 32 - 1, ...[...rules.values()].flatMap((bound) => [Number(bound) - 1, bound, Number(bound) + 1])]
  }
  if (one.fieldKind === 'enum') return [-1, ...one.enum.values.map(({ number }) => number), one.enum.values.length, 99]
  if (kind !== 'string') return []
  return [...textsAt(rules), ...hostileTexts, ...(rules.has('ip') ? addresses : [])]
}

/** Messages of a schema that differ from one another in one value, which is next to a bound. */
function* bordering(schema: DescMessage): Generator<JsonObject> {
  yield {}
  for (const one of schema.fields) {
    for (const value of valuesAt(one)) yield { [one.localName]: value } as JsonObject
    if (one.fieldKind !== 'message') continue
    for (const inner of bordering(one.message)) yield { [one.localName]: inner }
  }
}

/** A message of any values next to bounds, nested ones included. */
function mixed(schema: DescMessage, random: Random): JsonObject {
  const message: Record<string, unknown> = {}
  for (const one of schema.fields) {
    const values = valuesAt(one)
    if (one.fieldKind === 'message' && random.share() < 0.7) message[one.localName] = mixed(one.message, random)
    if (values.length > 0 && random.share() < 0.7) message[one.localName] = random.pick(values)
  }
  return message as JsonObject
}

describe('protovalidate has the same verdict, fields, rules and words', () => {
  test.each(methods.map(({ input }) => [input.typeName, input] as const))('for %s at its borders', (_, input) => {
    for (const values of bordering(input)) compare(input, create(input, values as MessageInitShape<DescMessage>))
  })

  test('for thousands of messages with several values next to bounds', () => {
    const random = new Random(seed)
    for (let run = 0; run < 3000; run++) {
      const { input } = random.pick(methods)
      compare(input, create(input, mixed(input, random) as MessageInitShape<DescMessage>))
    }
    expect(seen.kept).toBeGreaterThan(500)
    expect(seen.broken).toBeGreaterThan(500)
  })

  test('for the messages that damaged requests are made of', () => {
    const random = new Random(seed)
    for (let run = 0; run < 2000; run++) {
      const { input } = random.pick(methods)
      compare(input, fromJson(input, messageOf(input, {}, random)))
    }
  })
})

type Rules = MessageInitShape<typeof FieldRulesSchema>

/** A schema of one field, a string by default, with these rules. */
function schemaWith(rules: Rules, rest: MessageInitShape<typeof FieldDescriptorProtoSchema> = {}): DescMessage {
  const options = create(FieldOptionsSchema)
  setExtension(options, field, create(FieldRulesSchema, rules))
  const file = create(FileDescriptorProtoSchema, {
    name: 'made_up.proto',
    syntax: 'proto3',
    messageType: [
      {
        name: 'MadeUp',
        field: [
          {
            name: 'text',
            number: 1,
            type: FieldDescriptorProto_Type.STRING,
            label: FieldDescriptorProto_Label.OPTIONAL,
            options,
            ...rest,
          } as MessageInitShape<typeof FieldDescriptorProtoSchema>,
        ],
      },
    ],
  })
  return createFileRegistry(file, () => undefined).getMessage('MadeUp') as DescMessage
}

const text = (value: object): Rules => ({ type: { case: 'string', value } }) as Rules

describe('a schema stops the start', () => {
  test.each<[string, DescMessage, RegExp]>([
    ['a rule of texts', schemaWith(text({ prefix: 'a' })), /rule prefix of buf.validate, which is unknown/],
    ['an expression', schemaWith({ cel: [{ id: 'a', expression: 'true' }] }), /rules cel of buf.validate/],
    ['a condition', schemaWith({ ignore: 1 }), /rules ignore of buf.validate/],
    ['rules of another type', schemaWith({ type: { case: 'bytes', value: {} } } as Rules), /rules bytes/],
    [
      'rules for a list',
      schemaWith(text({ minLen: 1n }), { label: FieldDescriptorProto_Label.REPEATED }),
      /in a oneof, a list/,
    ],
    [
      'half of a range',
      schemaWith({ type: { case: 'uint32', value: { greaterThan: { case: 'gte', value: 1 } } } } as Rules, {
        type: FieldDescriptorProto_Type.UINT32,
      }),
      /gte and lte/,
    ],
    ['two counts', schemaWith(text({ pattern: '^[a-z]{1,3}[0-9]{2}$' })), /more than one class with a count/],
    ['alternatives in a pattern', schemaWith(text({ pattern: '^(a|b)$' })), /more than one class with a count/],
    ['a pattern without an end', schemaWith(text({ pattern: '^[a-z]{1,3}' })), /more than one class with a count/],
    ['an escape in a pattern', schemaWith(text({ pattern: '^[\\w]{1,3}$' })), /more than one class with a count/],
  ])('for %s', (_, schema, problem) => {
    expect(() => requireKnownRules(schema)).toThrow(problem)
    expect(() => violationsOf(schema, create(schema))).toThrow(problem)
  })
})

test('a schema whose rules are all known starts, and its messages are checked by them', () => {
  const schema = schemaWith(text({ minLen: 1n, maxLen: 3n, pattern: '^[a-z]{1,3}$' }))
  expect(() => requireKnownRules(schema)).not.toThrow()
  const broken = violationsOf(schema, create(schema)).map(({ ruleId }) => ruleId)
  expect(broken).toEqual(['string.min_len', 'string.pattern'])
})
