import { createHash } from 'node:crypto'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { readPayload } from '../../../src/core/order/start.ts'
import { CountersignError } from '../../../src/shared/errors.ts'
import { isPlainLine } from '../../../src/shared/plain-line.ts'
import { Random } from '../../http/generated/random.ts'

/** The message with which a payload is refused; `undefined` if it is not. */
function refusalOf(text: string): string | undefined {
  try {
    readPayload(text)
    return undefined
  } catch (error) {
    if (!(error instanceof CountersignError)) throw error
    expect(error).toMatchObject({ reason: 'INVALID_REQUEST', metadata: { field: 'payload' } })
    return error.message
  }
}

const canonical = (text: string) => readPayload(text).payload

describe('the canonical form', () => {
  // RFC 8785, 3.2.2 and 3.2.4, without its control characters, its 1E30, and the two last digits of its
  // 333333333.33333329.
  test('is that of the sample in RFC 8785', () => {
    const sample = String.raw`{
      "numbers": [333333333.3333333, 4.50, 2e-3, 0.000000000000000000000000001],
      "string": "\u20ac$\u0041'\u0042\u0022\u005c\\\"\/",
      "literals": [null, true, false]
    }`
    expect(canonical(sample)).toBe(
      String.raw`{"literals":[null,true,false],"numbers":[333333333.3333333,4.5,0.002,1e-27],"string":"€$A'B\"\\\\\"/"}`,
    )
  })

  // RFC 8785, 3.2.3, without the two names that are control characters.
  test('has names in the order of their UTF-16 code units, as in RFC 8785', () => {
    const sample = String.raw`{
      "\u20ac": "Euro Sign",
      "\ufb33": "Hebrew Letter Dalet With Dagesh",
      "1": "One",
      "\ud83d\ude00": "Emoji: Grinning Face",
      "\u00f6": "Latin Small Letter O With Diaeresis"
    }`
    const inOrder = ['One', 'Latin Small Letter O With Diaeresis', 'Euro Sign', 'Emoji: Grinning Face']
    expect([...canonical(sample).matchAll(/:"(.*?)"/g)].map(([, value]) => value)).toEqual([
      ...inOrder,
      'Hebrew Letter Dalet With Dagesh',
    ])
  })

  // The test data of the RFC's author, github.com/cyberphone/json-canonicalization, with a name x that is a line break
  // there.
  test.each([
    [
      'structures',
      '{ "1": {"f": {"f": "hi","F": 5} ,"x": 56.0}, "10": { }, "": "empty", "a": { }, "111": [ {"e": "yes","E": "no" } ], "A": { } }',
      '{"":"empty","1":{"f":{"F":5,"f":"hi"},"x":56},"10":{},"111":[{"E":"no","e":"yes"}],"A":{},"a":{}}',
    ],
    [
      'french',
      '{ "peach": "This sorting order", "péché": "is wrong according to French", "pêche": "but canonicalization MUST", "sin": "ignore locale" }',
      '{"peach":"This sorting order","péché":"is wrong according to French","pêche":"but canonicalization MUST","sin":"ignore locale"}',
    ],
    ['arrays', '[ 56, { "d": true, "10": null, "1": [ ] } ]', '[56,{"1":[],"10":null,"d":true}]'],
    ['unicode', String.raw`{ "Unnormalized Unicode":"A\u030a" }`, '{"Unnormalized Unicode":"A\u030a"}'],
  ])('is that of the published test %s', (_name, input, output) => expect(canonical(input)).toBe(output))

  // RFC 8785, Appendix B: the doubles in it that I-JSON takes as they are.
  test.each([
    ['0000000000000000', '0'],
    ['0000000000000001', '5e-324'],
    ['8000000000000001', '-5e-324'],
    ['41b3de4355555553', '333333333.3333332'],
    ['41b3de4355555554', '333333333.33333325'],
    ['41b3de4355555555', '333333333.3333333'],
    ['41b3de4355555556', '333333333.3333334'],
    ['41b3de4355555557', '333333333.33333343'],
    ['becbf647612f3696', '-0.0000033333333333333333'],
    ['43143ff3c1cb0959', '1424953923781206.2'],
  ])('of the double %s is %s', (bits, number) => {
    expect(Buffer.from(bits, 'hex').readDoubleBE()).toBe(Number(number))
    expect(canonical(number)).toBe(number)
  })

  test.each([
    ['-0', '0'],
    ['-0.0e5', '0'],
    ['0e99999999999999999999', '0'],
    ['1.0', '1'],
    ['1e2', '100'],
    ['100E-2', '1'],
    ['0.000001', '0.000001'],
    ['0.0000001', '1e-7'],
    ['9007199254740991', '9007199254740991'],
    ['-9.007199254740991e+15', '-9007199254740991'],
  ])('of the number %s is %s', (text, number) => expect(canonical(text)).toBe(number))

  test('of a number with thousands of zeros is the number without them', () => {
    expect(canonical(`1${'0'.repeat(8000)}e-8000`)).toBe('1')
    expect(canonical(`0.${'0'.repeat(4000)}1${'0'.repeat(4000)}e4001`)).toBe('1')
  })

  test.each(['null', 'true', '"text"', '7', '[]', '{}', '"\u00a0\u3000"', '{"":0}', '{"constructor":1,"toString":2}'])(
    'can be any value, such as %s',
    (text) => expect(canonical(` ${text}\r\n\t`)).toBe(text),
  )

  test('is what the hash is made of', () => {
    const { payload, payloadHash } = readPayload('{"b": 1, "ä": 2}')
    expect(payloadHash).toBe(`sha256:${createHash('sha256').update(payload, 'utf8').digest('base64url')}`)
    expect(readPayload('{}').payloadHash).toBe('sha256:RBNvo1WzZ4oRRq0W9-hknpT7T8If536DEMBg9hyq_4o')
  })
})

/** A text without characters that are refused. */
const plainText = fc
  .string({ unit: 'binary', maxLength: 8 })
  .filter((text) => text.isWellFormed() && isPlainLine(text) && !/\p{NChar}/u.test(text))
const number = fc.oneof(
  fc.maxSafeInteger(),
  fc.double({ min: -Number.MAX_SAFE_INTEGER, max: Number.MAX_SAFE_INTEGER, noNaN: true }).map((value) => value + 0),
  fc.integer({ min: -1000, max: 1000 }).map((value) => value / 100 + 0),
)
const name = fc.oneof(plainText, fc.nat(99).map(String)).filter((text) => text !== '__proto__')
const { value: json } = fc.letrec<{ value: unknown }>((tie) => ({
  value: fc.oneof(
    { maxDepth: 8, depthSize: 'medium' },
    fc.oneof(plainText, number, fc.boolean(), fc.constant(null)),
    fc.array(tie('value'), { maxLength: 4 }),
    fc.dictionary(name, tie('value'), { maxKeys: 4, noNullPrototype: true }),
  ),
}))

/** Writes a value in one of the many ways that mean the same. */
function spell(value: unknown, random: Random): string {
  const space = () => random.pick(['', '', ' ', '\n\t', '\r\n  '])
  const list = (open: string, items: readonly string[], close: string) =>
    `${open}${space()}${items.map((item) => `${space()}${item}${space()}`).join(',')}${close}`
  const string = (text: string) =>
    JSON.stringify(text).replace(/[^"\\]|\\./gs, (unit) => {
      if (unit.startsWith('\\') || random.share() < 0.5) return unit
      return unit === '/' ? '\\/' : `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`
    })
  const numeral = (value: number) => {
    const plain = String(value)
    const zeros = plain.replace(
      /^-?\d+(\.\d+)?/,
      (digits, fraction) => `${digits}${fraction === undefined ? '.0' : '00'}`,
    )
    return random.pick([plain, zeros, value.toExponential(), value.toExponential().toUpperCase()])
  }
  const spelled = (part: unknown): string => {
    if (typeof part === 'string') return string(part)
    if (typeof part === 'number') return numeral(part)
    if (Array.isArray(part)) return list('[', part.map(spelled), ']')
    if (typeof part !== 'object' || part === null) return String(part)
    const members = Object.entries(part)
      .map((member) => ({ member, place: random.share() }))
      .sort((a, b) => a.place - b.place)
      .map(({ member: [name, item] }) => `${string(name)}${space()}:${space()}${spelled(item)}`)
    return list('{', members, '}')
  }
  return `${space()}${spelled(value)}${space()}`
}

const fits = (text: string) => Buffer.byteLength(text) <= 8192

describe('a value', () => {
  test('means the same in its canonical form, which is its own canonical form', () => {
    fc.assert(
      fc.property(json, (value) => {
        const text = JSON.stringify(value)
        fc.pre(fits(text))
        const { payload, payloadHash } = readPayload(text)
        expect(JSON.parse(payload)).toEqual(value)
        expect(readPayload(payload)).toMatchObject({ payload, payloadHash })
      }),
    )
  })

  test('has the same canonical form and hash, however it is written', () => {
    fc.assert(
      fc.property(json, fc.integer(), (value, seed) => {
        const text = spell(value, new Random(seed))
        fc.pre(fits(text))
        expect(JSON.parse(text)).toEqual(value)
        const { asWritten: _, ...same } = readPayload(JSON.stringify(value))
        expect(readPayload(text)).toMatchObject(same)
        expect(JSON.parse(readPayload(text).asWritten)).toEqual(value)
      }),
    )
  })

  test('is read as JSON.parse reads it, or refused', () => {
    const more = ['\\u', '{"a":', 'null', '1e3']
    const scraps = fc.constantFrom(...'{}[],:"\\/0123456789.eE+-_utrfalsn \t\n\u00a0\ufeff', ...more)
    const damaged = fc.tuple(json, fc.nat(), fc.nat(2), scraps).map(([value, at, cut, scrap]) => {
      const text = JSON.stringify(value)
      const start = at % (text.length + 1)
      return text.slice(0, start) + scrap + text.slice(start + cut)
    })
    const parsed = (text: string) => {
      try {
        return { value: JSON.parse(text) }
      } catch {
        return undefined
      }
    }
    fc.assert(
      fc.property(fc.oneof(damaged, fc.string({ unit: scraps, maxLength: 20 })), (text) => {
        const refusal = refusalOf(text)
        const expected = parsed(text)
        if (expected === undefined) expect(refusal).toBeDefined()
        else if (refusal === undefined)
          expect({ value: JSON.parse(canonical(text)) }).toEqual(withoutMinusZero(expected))
        else expect(refusal).not.toContain('not valid JSON')
      }),
      { numRuns: 500 },
    )
  })
})

function withoutMinusZero(value: unknown): unknown {
  return JSON.parse(JSON.stringify(value))
}

describe('refused', () => {
  test.each([
    ['', 'its end'],
    ['{"a":1', 'its end'],
    ['[1 2]', 'character 4'],
    ['{"a" 1}', 'character 6'],
    ['{"a":1,}', 'character 8'],
    ['[1,]', 'character 4'],
    ['[,]', 'character 2'],
    ['{1:2}', 'character 2'],
    ['{"a":1}x', 'character 8'],
    ['[] []', 'character 4'],
    ['[}', 'character 2'],
    ['["a"b"]', 'character 5'],
    ['"abc', 'character 1'],
    [String.raw`["\x41"]`, 'character 2'],
    [String.raw`["\u12"]`, 'character 2'],
    ['"tab\there"', 'character 1'],
    ['01', 'character 1'],
    ['1.', 'character 1'],
    ['.5', 'character 1'],
    ['+1', 'character 1'],
    ['0x10', 'character 1'],
    ['NaN', 'character 1'],
    ['[-Infinity]', 'character 2'],
    ['undefined', 'character 1'],
    ["{'a':1}", 'character 2'],
    ['/* a */ 1', 'character 1'],
    ['\u00a01', 'character 1'],
    ['\v1', 'character 1'],
    ['\ufeff{}', 'character 1'],
    ['{}\ufeff', 'character 3'],
  ])('is %j, which is not JSON', (text, where) => {
    expect(refusalOf(text)).toBe(`payload is not valid JSON, at ${where}`)
  })

  test.each([
    ['{"a":1,"b":2,"a":1}', 14],
    [String.raw`{"a":1,"\u0061":2}`, 8],
    [String.raw`[{"\ud83d\ude00":1,"😀":2}]`, 20],
    ['{"":1,"":2}', 7],
  ])('is a name that stands twice in an object: %s', (text, at) => {
    expect(refusalOf(text)).toBe(`payload has a name twice in an object, at character ${at}`)
  })
  test('is not a name that stands in two objects', () => {
    expect(refusalOf('{"a":{"a":[{"a":1},{"a":1}]},"A":1}')).toBeUndefined()
  })

  test.each(['{"__proto__":1}', String.raw`[{"\u005f_proto__":{}}]`])('is the name __proto__: %s', (text) => {
    expect(refusalOf(text)).toMatch(/^payload has the name __proto__, at character \d$/)
  })
  test('is not the text __proto__', () => expect(refusalOf('["__proto__"]')).toBeUndefined())

  const asStringAndName = [(text: string) => `["${text}"]`, (text: string) => `{"${text}":1}`]

  test.each(['\ud800', '\udc00', 'a\udbffb', '\ude00\ud83d', String.raw`\ud800`, String.raw`\uDFFF\uD800x`])(
    'is half a surrogate pair: %j',
    (text) => {
      for (const within of asStringAndName) {
        expect(refusalOf(within(text))).toBe('payload has a lone surrogate, at character 2')
      }
    },
  )
  test.each(['\ufffe', '\uffff', '\ufdd0', '\u{1ffff}', String.raw`\uFFFE`, String.raw`\udbff\udfff`])(
    'is a noncharacter: %j',
    (text) => {
      for (const within of asStringAndName) {
        expect(refusalOf(within(text))).toBe('payload has a Unicode noncharacter, at character 2')
      }
    },
  )
  test.each([
    ...String.raw`\n \r \t \u0000 \u001b \u2029 \u2066 \u2800 \udb40\udc61`.split(' '),
    ...['\u007f', '\u0085', '\u2028', '\u202e', '\u200f', '\u061c', '\u3164', '\u200d'],
  ])('is a character that could forge a line or turn the text around: %j', (text) => {
    for (const within of asStringAndName) {
      expect(refusalOf(within(text))).toBe(
        'payload has a line break, a control, text-direction or invisible character, or a pile of marks, at character 2',
      )
    }
  })

  test.each([
    ...'9007199254740992 9007199254740993 -9007199254740992 9007199254740991.9 10000000000000000000000'.split(' '),
    ...'1000000000000000000000 1e21 1E30 1e400 -1e400 1e99999999999999999999'.split(' '),
  ])('is a number beyond 2^53-1: %s', (text) => {
    expect(refusalOf(`[${text}]`)).toBe('payload has a number beyond 2^53-1 (send a string), at character 2')
  })
  test.each([
    ...'3.141592653589793238462643383279 333333333.33333329 0.10000000000000001 9007199254740991.4'.split(' '),
    ...'1.0000000000000000000001 1e-400 4e-324 1e-99999999999999999999'.split(' '),
    `1.${'0'.repeat(50)}1`,
  ])('is a number that a double would change: %s', (text) => {
    expect(refusalOf(`[${text}]`)).toBe(
      'payload has a number with more digits than a double keeps (send a string), at character 2',
    )
  })

  test('is what has more than eight levels, however deep', () => {
    const nested = (levels: number) => `${'['.repeat(levels)}${']'.repeat(levels)}`
    expect(canonical(nested(8))).toBe(nested(8))
    expect(canonical('{"a":[{"a":[{"a":[{"a":[1]}]}]}]}')).toBe('{"a":[{"a":[{"a":[{"a":[1]}]}]}]}')
    for (const text of [nested(9), nested(4096), '['.repeat(8192)]) {
      expect(refusalOf(text)).toBe('payload has more than 8 levels, at character 9')
    }
    expect(refusalOf('{"a":'.repeat(1600))).toBe('payload has more than 8 levels, at character 41')
  })

  test('is what is larger than 8 KiB in UTF-8, as sent or in canonical form', () => {
    const text = (bytes: number) => `"${'é'.repeat((bytes - 2) / 2)}"`
    expect(canonical(text(8192))).toBe(text(8192))
    expect(refusalOf(text(8194))).toBe('payload is larger than 8192 bytes')
    expect(refusalOf(`1${' '.repeat(8192)}`)).toBe('payload is larger than 8192 bytes')
    expect(refusalOf(`[${'1e15,'.repeat(1000)}1]`)).toBe('payload is larger than 8192 bytes in its canonical form')
  })

  test('without its text being quoted', () => {
    for (const text of ['{"hunter2":1,"hunter2":2}', '["hunter2\\n"]', '[hunter2]', '{"hunter2"']) {
      expect(refusalOf(text)).not.toContain('hunter')
    }
  })
})
