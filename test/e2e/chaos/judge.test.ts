import { describe, expect, test } from 'vitest'
import { judge } from './judge.ts'
import type { Answer, Ledger, NonceEntry, OrderAnswer, OrderCall, OrderEntry } from './ledger.ts'

/** An answer that took from 100 ms until 110 ms, unless it says otherwise. */
function answer(outcome = 'OK', at = 100): Answer {
  return { sentAt: at, answeredAt: at + 10, outcome }
}

function call(name: OrderCall, outcome = 'OK', more: Partial<OrderAnswer> = {}): OrderAnswer {
  return { ...answer(outcome), call: name, ...more }
}

function nonce(...outcomes: string[]): NonceEntry {
  return { nonceId: 'n', issued: answer(), uses: outcomes.map((outcome) => answer(outcome)) }
}

function seen(...events: [sequence: number, status: string][]): OrderEntry['watches'][0]['seen'] {
  return events.map(([sequence, status]) => ({ sequence, status, receivedAt: 105 }))
}

/** An order that was claimed and cancelled, with one watch, unless it says otherwise. */
function order(more: Partial<OrderEntry> = {}): OrderEntry {
  return {
    orderId: 'o',
    started: answer(),
    calls: [call('claim'), call('claim', 'ORDER_ALREADY_CLAIMED'), call('cancel')],
    watches: [{ seen: seen([1, 'created'], [2, 'claimed'], [3, 'cancelled']), failures: [] }],
    histories: [
      ['created', 'claimed', 'cancelled'],
      ['created', 'claimed', 'cancelled'],
    ],
    ...more,
  }
}

function ledger({ sessions = [], ...more }: Partial<Omit<Ledger, 'sessions'>> & { sessions?: boolean[][] }): Ledger {
  const known = sessions.map((one, i) => [`token ${i}`, { acknowledged: answer(), known: one }] as const)
  return { nonces: [], orders: [], unmade: [], sessions: new Map(known), ...more }
}

function kindsIn(one: Ledger): string[] {
  return [...new Set(judge(one, []).unexplained.map(({ kind }) => kind))]
}

function watched(...events: [sequence: number, status: string][]): Ledger {
  return ledger({ orders: [order({ watches: [{ seen: seen(...events), failures: [] }] })] })
}

describe('nothing is wrong', () => {
  test.each<[string, Ledger]>([
    ['if one use of a nonce succeeds', ledger({ nonces: [nonce('OK', 'NONCE_NOT_FOUND', 'NONCE_NOT_FOUND')] })],
    [
      'if no use of a nonce succeeds, but one was in doubt',
      ledger({ nonces: [nonce('STORE_UNAVAILABLE', 'NONCE_NOT_FOUND', 'NONCE_NOT_FOUND')] }),
    ],
    [
      'if calls are to be repeated',
      ledger({ unmade: ['STORE_UNAVAILABLE', 'SERVER_BUSY', 'NETWORK'].map((o) => answer(o)) }),
    ],
    ['if both instances know a session', ledger({ sessions: [[true, true]] })],
    ['if an order went as its answers and events say', ledger({ orders: [order()] })],
    [
      'if an order was approved and then cancelled',
      ledger({
        orders: [
          order({
            calls: [
              call('claim'),
              call('challenge'),
              call('approve'),
              call('cancel'),
              call('finalize', 'ORDER_CANCELLED'),
            ],
            watches: [],
            histories: [['created', 'claimed', 'waiting_user', 'approved', 'cancelled']],
          }),
        ],
      }),
    ],
  ])('%s', (_name, one) => {
    expect(judge(one, [])).toEqual({ notReplicated: [], unexplained: [] })
  })
})

describe('is named', () => {
  test.each<[string, Ledger]>([
    ['nonce used twice', ledger({ nonces: [nonce('OK', 'NONCE_NOT_FOUND', 'OK')] })],
    ['nonce lost', ledger({ nonces: [nonce('NONCE_NOT_FOUND', 'NONCE_NOT_FOUND')] })],
    // A server that is busy has done nothing, so nobody can have taken the nonce.
    ['nonce lost', ledger({ nonces: [nonce('SERVER_BUSY', 'NONCE_NOT_FOUND')] })],
    ['session gone', ledger({ sessions: [[true, false]] })],
    [
      'two verdicts',
      ledger({
        orders: [
          order({
            calls: [call('claim'), call('approve'), call('cancel'), call('reject')],
            histories: [['claimed', 'approved', 'cancelled', 'rejected']],
            watches: [],
          }),
        ],
      }),
    ],
    [
      'two verdicts',
      ledger({
        orders: [
          order({
            histories: [
              ['created', 'claimed', 'cancelled'],
              ['created', 'cancelled'],
            ],
          }),
        ],
      }),
    ],
    [
      'two sessions of an order',
      ledger({
        orders: [
          order({
            calls: [call('finalize', 'OK', { token: 'a' }), call('finalize', 'OK', { token: 'b' })],
            histories: [['finalized']],
            watches: [],
          }),
        ],
      }),
    ],
    ['order lost', ledger({ orders: [order({ histories: [undefined, ['created', 'claimed', 'cancelled']] })] })],
    ['step of an order undone', ledger({ orders: [order({ calls: [call('challenge'), call('cancel')] })] })],
    [
      'step of an order undone',
      ledger({ orders: [order({ calls: [call('claim'), call('challenge', 'ORDER_TOKEN_INVALID')] })] }),
    ],
    ['event doubled', watched([1, 'created'], [2, 'claimed'], [2, 'claimed'], [3, 'cancelled'])],
    ['event missed', watched([1, 'created'], [3, 'cancelled'])],
    ['event undone', watched([1, 'created'], [2, 'cancelled'], [3, 'cancelled'])],
    ['end of an order not told', watched([1, 'created'], [2, 'claimed'])],
    ['end of an order not told', watched()],
    ['error that no retry cures', ledger({ unmade: [answer('INTERNAL')] })],
    ['error that no retry cures', ledger({ nonces: [nonce('OK', 'SIGNATURE_INVALID')] })],
    ['error that no retry cures', ledger({ orders: [order({ calls: [call('cancel', 'RATE_LIMITED')] })] })],
    [
      'error that no retry cures',
      ledger({ orders: [order({ watches: [{ ...order().watches[0]!, failures: [answer('INVALID_REQUEST')] }] })] }),
    ],
  ])('%s', (kind, one) => {
    expect(kindsIn(one)).toEqual([kind])
  })
})

describe('a lost write', () => {
  const lost = (at: number) => {
    const acknowledged = answer('OK', at)
    return { ...ledger({}), sessions: new Map([['token', { acknowledged, known: [false, false] }]]) }
  }
  const isExplained = (at: number, resumedAt?: number) =>
    judge(lost(at), [{ at: 5000, ...(resumedAt === undefined ? {} : { resumedAt }) }]).notReplicated.length === 1

  test('is explained if it was acknowledged just before its master died', () => {
    expect(isExplained(4900)).toBe(true)
    expect(isExplained(4995)).toBe(true)
  })

  test('is not explained if it was acknowledged long before that, or later', () => {
    expect(isExplained(3000)).toBe(false)
    expect(isExplained(5001)).toBe(false)
  })

  test('is not explained if the master acknowledged it as it went on, deposed', () => {
    expect(isExplained(4995, 6000)).toBe(true)
    expect(isExplained(4995, 5002)).toBe(false)
  })

  test('is not explained if no master died', () => {
    expect(judge(lost(4900), []).unexplained).toHaveLength(1)
  })
})
