import { expect, test } from 'vitest'
import { canonicalPayload } from '../../../src/core/order/canonical-payload.ts'
import { ApprovalError } from '../../../src/integrations/approvals/error.ts'
import { actionOf, payloadOf } from '../../../src/integrations/approvals/signed-payload.ts'

const circle: Record<string, unknown> = {}
circle.self = circle
const fan = (width: number, inner: unknown): unknown => Array.from({ length: width }, () => inner)
const named = Object.assign([1], { extra: 2 })
const hidden = Object.defineProperty({ shown: 1 }, 'hidden', { value: 2, enumerable: false })

class Money {
  amount = 5
}

/** What is no JSON, or no JSON that an order's payload can have. */
const refused: Readonly<Record<string, unknown>> = {
  undefined: undefined,
  'undefined inside': { a: undefined },
  'undefined in an array': [undefined],
  'a hole': new Array(1),
  'a function': { run: () => 1 },
  'a symbol': { a: Symbol('a') },
  'a symbol as a name': { [Symbol('a')]: 1 },
  'a bigint': { a: 1n },
  NaN: { a: Number.NaN },
  Infinity: { a: Number.POSITIVE_INFINITY },
  '-0': { a: -0 },
  '1e400': JSON.parse('{"a":1e400}'),
  'a number beyond 2^53-1': { a: 2 ** 53 },
  'a cycle': circle,
  'a getter': {
    get to() {
      return 'someone'
    },
  },
  'a getter in an array': Object.defineProperty([1], '0', { get: () => 1, enumerable: true }),
  'a hidden property': hidden,
  toJSON: { amount: 1, toJSON: () => ({ amount: 2 }) },
  'a date': new Date(0),
  'a map': new Map([['a', 1]]),
  'an object of a class': new Money(),
  'inherited properties': Object.create({ amount: 5 }),
  'a boxed number': Object(1),
  'an array with names': named,
  __proto__: JSON.parse('{"__proto__":{"amount":5}}'),
  'eight levels': [[[[[[[['deep']]]]]]]],
  'more than 8 KiB': 'x'.repeat(8200),
  'more values than 8 KiB can have': fan(100, fan(100, fan(100, fan(100, 1)))),
  'a line break': 'to: you\nto: me',
  'a text-direction character': 'a\u202eb',
  'a lone surrogate': '\ud800',
}

test.each(Object.entries(refused))('an action with %s is refused', (_, action) => {
  expect(() => payloadOf(action)).toThrow(expect.objectContaining({ name: 'ApprovalError', reason: 'ACTION_INVALID' }))
})

const amountOf = (language: string, currency: string): string =>
  new Intl.NumberFormat(language, { style: 'currency', currency }).format(1250.5)

test.each([
  ['he-IL', 'ILS', 'U+200F'],
  ['ar-EG', 'EGP', 'U+200F'],
  ['fa-IR', 'IRR', 'U+200E'],
])('an amount of Intl for %s is refused by its character and place, with the way out', (language, currency, name) => {
  const action = { tool: 'pay', items: [{ price: 1 }, { price: amountOf(language, currency) }] }
  expect(() => payloadOf(action)).toThrow(
    `The action cannot have ${name}, which is character 1 of action.items[1].price: give an amount as a number and a ` +
      'currency code, and write it for people in the title',
  )
})

test.each<[string, unknown, string]>([
  ['a line break', { to: 'you\nto: me' }, 'U+000A, which is character 4 of action.to: leave it out'],
  ['a text-direction character', ['a', 'b\u202ec'], 'U+202E, which is character 2 of action[1]: leave it out'],
  ['a lone surrogate', 'a\ud800', 'U+D800, which is character 2 of action: leave it out'],
  ['a character beyond 16 bits', 'a\u{e0061}', 'U+E0061, which is character 2 of action: leave it out'],
  ['a name', { a: { 'b\u200bc': 1 } }, 'U+200B, which is character 2 of a name in action.a: leave it out'],
  [
    'a name that is not repeated',
    { 'a secret': '\u200b' },
    'U+200B, which is character 1 of a member of action: leave',
  ],
])('%s is refused by its character and place', (_, action, message) => {
  expect(() => payloadOf(action)).toThrow(`The action cannot have ${message}`)
})

const taken: readonly (readonly [unknown, unknown])[] = [
  [null, null],
  ['text', 'text'],
  [
    { b: [1, 2.5, true], a: { c: null } },
    { b: [1, 2.5, true], a: { c: null } },
  ],
  [Object.assign(Object.create(null), { a: 1 }), { a: 1 }],
  [[[[[[[['deep']]]]]]], [[[[[[['deep']]]]]]]],
  [Object.freeze({ tool: 'delete', arguments: Object.freeze(['a']) }), { tool: 'delete', arguments: ['a'] }],
]

test.each(taken)('%j is taken over', (action, read) => {
  const payload = payloadOf(action)
  expect(actionOf(payload)).toStrictEqual(read)
  expect(JSON.parse(canonicalPayload(payload))).toStrictEqual({
    typ: 'countersign/action',
    action: read,
    nonce: expect.stringMatching(/^[\w-]{43}$/),
  })
})

test('two payloads of one action differ', () => {
  expect(payloadOf({ a: 1 })).not.toBe(payloadOf({ a: 1 }))
})

test('each property is read once, so that no second look can differ from the first', () => {
  let looks = 0
  const shifting = new Proxy(
    { amount: 0 },
    {
      getOwnPropertyDescriptor(target, name) {
        looks += 1
        return { ...Reflect.getOwnPropertyDescriptor(target, name), value: looks, configurable: true }
      },
    },
  )
  expect(actionOf(payloadOf(shifting))).toStrictEqual({ amount: 1 })
  expect(looks).toBe(1)
})

test('a later change of the action is not in the payload', () => {
  const action = { to: 'you', list: [1] }
  const payload = payloadOf(action)
  action.to = 'me'
  action.list.push(2)
  expect(actionOf(payload)).toStrictEqual({ to: 'you', list: [1] })
})

test('functions that others put on the prototypes do not run', () => {
  const prototypes = [Object.prototype, Array.prototype, String.prototype] as unknown as Record<string, unknown>[]
  for (const prototype of prototypes) prototype.toJSON = () => 'changed'
  try {
    expect(actionOf(payloadOf({ a: ['b'] }))).toStrictEqual({ a: ['b'] })
  } finally {
    for (const prototype of prototypes) delete prototype.toJSON
  }
})

test('a refusal quotes no value of the action', () => {
  const message = (() => {
    try {
      return payloadOf({ secret: 'hunter2\n' })
    } catch (error) {
      return error instanceof ApprovalError ? error.message : ''
    }
  })()
  expect(message).toMatch(/^The action cannot have U\+000A/)
  expect(message).not.toContain('hunter2')
})
