import { type DescField, type DescMessage, type JsonObject, type JsonValue, ScalarType } from '@bufbuild/protobuf'
import type { Random } from './random.ts'

/**
 * Values that belong together, such as an order and its tokens, by the names of the fields that take them. `null`
 * leaves a field out.
 */
export type Known = Readonly<Record<string, JsonValue>>

/** A message of the right types. What is known fills the fields of its names; the rest is made up. */
export function messageOf(schema: DescMessage, known: Known, random: Random): JsonObject {
  const object: JsonObject = {}
  const ofOneofs = schema.oneofs.map(({ fields }) => random.pick(fields))
  for (const field of schema.fields) {
    const { jsonName } = field
    if (field.oneof !== undefined && !ofOneofs.includes(field)) continue
    const value = known[jsonName]
    if (value === null) continue
    if (value !== undefined) object[jsonName] = value
    else if (random.share() < (field.fieldKind === 'message' ? 0.9 : 0.4))
      object[jsonName] = madeUp(field, known, random)
  }
  return object
}

const plainTexts = ['', 'a', 'unknown', 'nimiq', '/done', 'Pay 5', 'sha256:abc', 'ab'.repeat(32), 'cd'.repeat(64), '12']

function madeUp(field: DescField, known: Known, random: Random): JsonValue {
  const list = (of: () => JsonValue): JsonValue => Array.from({ length: random.below(3) }, of)
  const scalar = (type: ScalarType): JsonValue => {
    if (type === ScalarType.STRING) return random.pick(plainTexts)
    if (type === ScalarType.BOOL) return random.share() < 0.5
    return type === ScalarType.BYTES ? random.bytes(random.below(40)).toString('base64') : random.pick([0, 1, 2, 99])
  }
  switch (field.fieldKind) {
    case 'scalar':
      return scalar(field.scalar)
    case 'enum':
      return random.pick(field.enum.values).number
    case 'message':
      return messageOf(field.message, known, random)
    case 'list':
      if (field.listKind === 'message') return list(() => messageOf(field.message, known, random))
      return list(() => (field.listKind === 'enum' ? random.pick(field.enum.values).number : scalar(field.scalar)))
    case 'map':
      return {}
  }
}

/** Texts that fit hardly any field. */
export const hostileTexts: readonly string[] = [
  '',
  ' ',
  '\0',
  'a\0b',
  'x\ud83d',
  '\udc80x',
  '\ud83e\udd80 at the start',
  '\ud83e\udd80'.repeat(300),
  '\u202eabc\u2066def',
  '\u200b\u2060\ufeff',
  'e\u0301',
  '\ufb01\u017f\u212a',
  'a\r\nset-cookie: a=b',
  '\u2028',
  '<script>alert(1)</script>',
  "' OR 1=1 --",
  '../../etc/passwd',
  '//evil.example',
  'javascript:alert(1)',
  '%00%ff',
  '__proto__',
  'constructor',
  'NaN',
  '-0',
  '1e999',
  ...[64, 65, 120, 121, 512, 513, 3000, 40_000, 70_000].map((length) => 'x'.repeat(length)),
  'ab'.repeat(16_384),
]

/** JSON that fits hardly any field: some of it is not even JSON. */
const hostileValues: readonly string[] = [
  ...[
    'null',
    'true',
    '[]',
    '{}',
    '[null]',
    '[[[]]]',
    '{"__proto__":{"polluted":true}}',
    '{"constructor":{"prototype":1}}',
  ],
  ...['-1', '0', '1.5', '-0', '2147483648', '4294967295', '4294967296', '9007199254740993', '18446744073709551616'],
  ...['1e308', '1e999', '1e-999', '7'.repeat(4000), 'NaN', 'Infinity', '0x10', '01', '+1', '1.', 'undefined', ''],
]

const deep: readonly ((depth: number) => string)[] = [
  (depth) => `${'['.repeat(depth)}${']'.repeat(depth)}`,
  (depth) => `${'{"a":'.repeat(depth)}1${'}'.repeat(depth)}`,
  (depth) => '['.repeat(depth),
]

const hostileNames = ['__proto__', 'constructor', 'prototype', 'toString', 'hasOwnProperty', '', '@type', '[a.b]', '\0']

/** The JSON of a message after a few changes for the worse. */
export function hostileJson(object: JsonObject, random: Random): Buffer {
  const pairs = Object.entries(object).map(([name, value]): [string, string] => [
    JSON.stringify(name),
    typeof value === 'object' && value !== null && !Array.isArray(value) && random.share() < 0.5
      ? hostileJson(value, random).toString()
      : JSON.stringify(value),
  ])
  for (let left = random.below(4); left > 0; left--) {
    const at = random.below(pairs.length)
    const known = pairs[at]
    const choice = random.below(4)
    if (choice === 0 || known === undefined) {
      pairs.splice(at, 0, [JSON.stringify(random.pick(hostileNames)), hostileValue(random)])
    } else if (choice === 1) {
      pairs.push([known[0], hostileValue(random)])
    } else {
      known[1] = hostileValue(random)
    }
  }
  return Buffer.from(`{${pairs.map((pair) => pair.join(':')).join(',')}}`)
}

function hostileValue(random: Random): string {
  const choice = random.share()
  if (choice < 0.5) return JSON.stringify(random.pick(hostileTexts))
  if (choice < 0.9) return random.pick(hostileValues)
  return random.pick(deep)(random.pick([10, 200, 5000]))
}

/**
 * The message with some of its texts replaced. Half surrogates, which binary messages cannot have, are replaced as
 * well.
 */
export function withHostileTexts(object: JsonObject, random: Random): JsonObject {
  return Object.fromEntries(
    Object.entries(object).map(([name, value]) => {
      if (typeof value === 'object' && value !== null && !Array.isArray(value)) {
        return [name, withHostileTexts(value, random)]
      }
      const replaced = typeof value === 'string' && random.share() < 0.2
      return [name, replaced ? random.pick(hostileTexts).toWellFormed() : value]
    }),
  )
}

/** Bytes after an accident. */
export function damaged(bytes: Buffer, random: Random): Buffer {
  const at = random.below(bytes.length + 1)
  switch (random.below(5)) {
    case 0:
      return bytes.subarray(0, at)
    case 1:
      return Buffer.concat([bytes.subarray(0, at), random.bytes(1 + random.below(12)), bytes.subarray(at)])
    case 2:
      return Buffer.concat([bytes.subarray(0, at), bytes])
    case 3:
      return random.bytes(random.below(300))
    default: {
      const copy = Buffer.from(bytes)
      for (let left = Math.min(copy.length, 1 + random.below(3)); left > 0; left--) {
        const index = random.below(copy.length)
        copy.writeUInt8(copy.readUInt8(index) ^ (1 << random.below(8)), index)
      }
      return copy
    }
  }
}
