import { create, type DescMessage, type MessageInitShape } from '@bufbuild/protobuf'
import { expect, test } from 'vitest'
import { OrderStatus, WatchOrderResponseSchema } from '../../gen/server/countersign/v1/order_service_pb.ts'
import {
  GetCurrentSessionResponseSchema,
  ListSessionsResponseSchema,
} from '../../gen/server/countersign/v1/session_service_pb.ts'
import { IssueNonceRequestSchema } from '../../gen/server/countersign/v1/sign_in_service_pb.ts'
import { restFromOutput } from '../../src/http/rest/json.ts'

const session = { id: 'an id', userId: 'a user', createdAt: 1_767_225_600_000n, current: true }

test('an answer reads the same, whether it is given as a message or as what one is made of', () => {
  const same = <Schema extends DescMessage>(schema: Schema, fields: MessageInitShape<Schema>): void =>
    expect(restFromOutput(schema, create(schema, fields))).toEqual(restFromOutput(schema, fields))
  same(GetCurrentSessionResponseSchema, { session })
  same(ListSessionsResponseSchema, { sessions: [session, {}] })
  same(ListSessionsResponseSchema, {})
  same(WatchOrderResponseSchema, { status: OrderStatus.WAITING_USER, sequence: 3 })
  same(IssueNonceRequestSchema, { address: 'an address' })
})

test('a field that always has a value is there without one; one that can be left out is not', () => {
  expect(restFromOutput(ListSessionsResponseSchema, { sessions: [session] })).toEqual({
    sessions: [
      expect.objectContaining({ id: 'an id', createdAt: 1_767_225_600_000, expiresAt: 0, ip: '', current: true }),
    ],
  })
  expect(restFromOutput(GetCurrentSessionResponseSchema, {})).toEqual({ groups: [] })
  const { appName, address } = restFromOutput(IssueNonceRequestSchema, create(IssueNonceRequestSchema, { address: '' }))
  expect({ appName, address }).toEqual({ appName: undefined, address: '' })
  expect(restFromOutput(WatchOrderResponseSchema, {})).toMatchObject({ status: 'unspecified', sequence: 0 })
})

test('an answer without entries has a list of its own, which its receiver may change', () => {
  const first = restFromOutput(ListSessionsResponseSchema, {}) as { sessions: unknown[] }
  first.sessions.push('changed by an application that called Better Auth’s endpoint in its own process')
  expect(restFromOutput(ListSessionsResponseSchema, {})).toEqual({ sessions: [] })
})
