import type { Message } from '@bufbuild/protobuf'
import { OrderKind, OrderStatus } from '../../gen/client/countersign/v1/order_service_pb.ts'
import type * as types from './types.ts'

const kinds: readonly (readonly [OrderKind, types.OrderKind])[] = [
  [OrderKind.LOGIN, 'login'],
  [OrderKind.SIGN, 'sign'],
]

const statuses: readonly (readonly [OrderStatus, types.OrderStatus])[] = [
  [OrderStatus.CREATED, 'created'],
  [OrderStatus.CLAIMED, 'claimed'],
  [OrderStatus.WAITING_USER, 'waiting_user'],
  [OrderStatus.APPROVED, 'approved'],
  [OrderStatus.FINALIZED, 'finalized'],
  [OrderStatus.REJECTED, 'rejected'],
  [OrderStatus.CANCELLED, 'cancelled'],
  [OrderStatus.EXPIRED, 'expired'],
]

/** The fields with an enum value, in all messages. */
const enumFields: Readonly<Record<string, ReadonlyMap<unknown, string>>> = {
  kind: new Map(kinds),
  status: new Map(statuses),
}

/** The protos' value of an order kind. */
export function protoKind(kind: types.OrderKind): OrderKind {
  return kinds.find(([, name]) => name === kind)?.[0] ?? OrderKind.UNSPECIFIED
}

/** A message as a plain object in the shape of REST's JSON; `T` says which. */
export function plain<T>(message: Message): T {
  const entries = Object.entries(message).filter(([name, value]) => !name.startsWith('$') && value !== undefined)
  return Object.fromEntries(
    entries.map(([name, value]) => [name, enumFields[name]?.get(value) ?? plainValue(value)]),
  ) as T
}

function plainValue(value: unknown): unknown {
  // Times: they fit in a number for the next 280,000 years.
  if (typeof value === 'bigint') return Number(value)
  if (Array.isArray(value)) return value.map(plainValue)
  return typeof value === 'object' && value !== null ? plain(value as Message) : value
}
