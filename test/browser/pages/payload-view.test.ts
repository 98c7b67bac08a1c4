import { expect, test } from 'vitest'
import { readPayload } from '../../../src/browser/pages/payload-view.ts'

const action = { tool: 'delete', arguments: { name: 'orders' } }

test('of the payload of an action, the action is what it says', () => {
  const payload = JSON.stringify({ typ: 'countersign/action', action, nonce: 'abc' })
  expect(readPayload(payload)).toEqual({ shown: action, nonce: 'abc' })
})

test.each([
  ['has more beside it', { typ: 'countersign/action', action, nonce: 'abc', amount: 5 }],
  ['has another type', { typ: 'countersign/other', action, nonce: 'abc' }],
  ['has no nonce', { typ: 'countersign/action', action }],
  ['has something else for a nonce', { typ: 'countersign/action', action, nonce: { amount: 5 } }],
  ['has no action', { typ: 'countersign/action', nonce: 'abc' }],
  ['is a list', ['countersign/action', action, 'abc']],
  ['is a text', 'countersign/action'],
  ['is null', null],
])('all of a payload is shown that %s', (_, value) => {
  expect(readPayload(JSON.stringify(value))).toEqual({ shown: value })
})
