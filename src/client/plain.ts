import type { Message } from '@bufbuild/protobuf'
import { OrderKind, OrderStatus } from '../../gen/client/countersign/v1/order_service_pb.ts'
import { type EnumWords, enumWords } from '../shared/enum-words.ts'
import type * as types from './types.ts'

const kinds = enumWords(OrderKind)

/** The enum fields of all messages, by their names. */
const enumFields: Readonly<Record<string, EnumWords>> = { kind: kinds, status: enumWords(OrderStatus) }

/** The value of an order kind in the protos. */
export function protoKind(kind: types.OrderKind): OrderKind {
  return kinds.numberOf(kind)
}

/** A message as a plain object in the shape of REST's JSON; `T` is the type of that shape. */
export function plain<T>(message: Message): T {
  const entries = Object.entries(message).filter(([name, value]) => !name.startsWith('$') && value !== undefined)
  return Object.fromEntries(
    entries.map(([name, value]) => [name, enumFields[name]?.wordOf(value) ?? plainValue(value)]),
  ) as T
}

function plainValue(value: unknown): unknown {
  // Times: they fit in a number for the next 280,000 years.
  if (typeof value === 'bigint') return Number(value)
  if (Array.isArray(value)) return value.map(plainValue)
  return typeof value === 'object' && value !== null ? plain(value as Message) : value
}
