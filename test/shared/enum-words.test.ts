import { expect, expectTypeOf, test } from 'vitest'
import * as client from '../../gen/client/countersign/v1/order_service_pb.ts'
import * as server from '../../gen/server/countersign/v1/order_service_pb.ts'
import { descEnumWords, type EnumWords, enumWords } from '../../src/shared/enum-words.ts'

const statuses = [
  'created',
  'claimed',
  'waiting_user',
  'approved',
  'finalized',
  'rejected',
  'cancelled',
  'expired',
] as const

const ways: readonly (readonly [string, EnumWords, EnumWords])[] = [
  ['the constants of gen/client', enumWords(client.OrderKind), enumWords(client.OrderStatus)],
  ['the constants of gen/server', enumWords(server.OrderKind), enumWords(server.OrderStatus)],
  ['the descriptors of gen/client', descEnumWords(client.OrderKindSchema), descEnumWords(client.OrderStatusSchema)],
  ['the descriptors of gen/server', descEnumWords(server.OrderKindSchema), descEnumWords(server.OrderStatusSchema)],
]

test.each(ways)('%s give the words of the REST interface', (_, kind, status) => {
  expect(kind.words).toEqual(['login', 'sign', 'link'])
  expect(status.words).toEqual(statuses)
  for (const word of statuses) expect(status.wordOf(status.numberOf(word))).toBe(word)
  expect(kind.numberOf('sign')).toBe(server.OrderKind.SIGN)
  expect(status.wordOf(server.OrderStatus.WAITING_USER)).toBe('waiting_user')
})

test.each(ways)('%s have no words for what is unspecified or unknown', (_, kind) => {
  for (const value of [0, 99, -1, '1', undefined]) expect(kind.wordOf(value)).toBeUndefined()
  for (const text of ['', 'unspecified', 'LOGIN', 'constructor', '__proto__', '1']) {
    expect(kind.numberOf(text)).toBeUndefined()
  }
})

test('the words are typed', () => {
  const kind = enumWords(server.OrderKind)
  expectTypeOf(kind.words).toEqualTypeOf<readonly ('login' | 'sign' | 'link')[]>()
  expectTypeOf(kind.wordOf(1)).toEqualTypeOf<'login' | 'sign' | 'link' | undefined>()
  expectTypeOf(kind.numberOf('login')).toEqualTypeOf<0 | 1 | 2 | 3>()
  expectTypeOf(kind.numberOf('any' as string)).toEqualTypeOf<0 | 1 | 2 | 3 | undefined>()
  expectTypeOf(enumWords(server.OrderStatus).words).toEqualTypeOf<readonly (typeof statuses)[number][]>()
})
