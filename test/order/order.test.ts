import { describe, expect, test } from 'vitest'
import {
  applyCommand,
  deadlineOf,
  decideEarly,
  forgottenAt,
  newestTransition,
  type OrderCommand,
  type OrderRecord,
  type OrderStatus,
  type StoredProof,
} from '../../src/order/order.ts'

const start = 1_800_000_000_000
const ttlMs = 120_000

const proof: StoredProof = {
  adapterId: 'ed25519',
  subject: '11'.repeat(32),
  publicKeyHex: '11'.repeat(32),
  signatureHex: '22'.repeat(64),
  address: 'NQ',
}
const otherProof = { ...proof, signatureHex: '33'.repeat(64) }
const login = { userId: 'user', seedHash: 'seed' }

const created: OrderRecord = {
  v: 1,
  orderId: 'order',
  kind: 'login',
  status: 'created',
  history: [{ sequence: 1, status: 'created', at: start }],
  origin: 'https://app.example',
  requester: { ip: '', userAgent: '' },
  returnTo: '/',
  challengeId: 'challenge',
  nonce: 'nonce',
  issuedAt: start,
  expiresAt: start + ttlMs,
  message: 'message',
  confirmationCode: '42',
  codeRequired: false,
  wrongCodes: 0,
  claimTokenHash: 'claim',
  desktopTokenHash: 'desktop',
}

const commands = {
  claim: { type: 'claim', challengeTokenHashes: ['phone'] },
  'claim by another': { type: 'claim', challengeTokenHashes: ['other phone', 'other phone, older secret'] },
  'claim after a change of secret': { type: 'claim', challengeTokenHashes: ['phone, newer secret', 'phone'] },
  readChallenge: { type: 'readChallenge' },
  approve: { type: 'approve', proof },
  'approve otherwise': { type: 'approve', proof: otherProof },
  reject: { type: 'reject' },
  cancel: { type: 'cancel' },
  finalize: { type: 'finalize', login },
  expire: { type: 'expire' },
} satisfies Record<string, OrderCommand>

/** Carries out commands that must all move the order on, a second apart. */
function after(...names: (keyof typeof commands)[]): OrderRecord {
  return names.reduce((order, name) => {
    const { at } = newestTransition(order)
    const outcome = applyCommand(order, commands[name], name === 'expire' ? deadlineOf(order) : at + 1000)
    expect(outcome.refusal).toBeUndefined()
    expect(outcome.order).not.toBe(order)
    return outcome.order
  }, created)
}

const states: Record<OrderStatus, OrderRecord> = {
  created,
  claimed: after('claim'),
  waiting_user: after('claim', 'readChallenge'),
  approved: after('claim', 'readChallenge', 'approve'),
  finalized: after('claim', 'readChallenge', 'approve', 'finalize'),
  rejected: after('claim', 'readChallenge', 'reject'),
  cancelled: after('claim', 'cancel'),
  expired: after('claim', 'expire'),
}

/** In the order of `states`; `→` moves, `=` answers as before. */
const expected: Record<keyof typeof commands, string[]> = {
  claim: ['→ claimed', '=', '=', '=', 'ORDER_FINALIZED', 'ORDER_REJECTED', 'ORDER_CANCELLED', 'ORDER_EXPIRED'],
  'claim by another': [
    '→ claimed',
    'ORDER_ALREADY_CLAIMED',
    'ORDER_ALREADY_CLAIMED',
    'ORDER_ALREADY_CLAIMED',
    'ORDER_FINALIZED',
    'ORDER_REJECTED',
    'ORDER_CANCELLED',
    'ORDER_EXPIRED',
  ],
  'claim after a change of secret': [
    '→ claimed',
    '=',
    '=',
    '=',
    'ORDER_FINALIZED',
    'ORDER_REJECTED',
    'ORDER_CANCELLED',
    'ORDER_EXPIRED',
  ],
  readChallenge: [
    'ORDER_CHALLENGE_NOT_READ',
    '→ waiting_user',
    '=',
    '=',
    'ORDER_FINALIZED',
    'ORDER_REJECTED',
    'ORDER_CANCELLED',
    'ORDER_EXPIRED',
  ],
  approve: [
    'ORDER_CHALLENGE_NOT_READ',
    'ORDER_CHALLENGE_NOT_READ',
    '→ approved',
    '=',
    '=',
    'ORDER_REJECTED',
    'ORDER_CANCELLED',
    'ORDER_EXPIRED',
  ],
  'approve otherwise': [
    'ORDER_CHALLENGE_NOT_READ',
    'ORDER_CHALLENGE_NOT_READ',
    '→ approved',
    'ORDER_ALREADY_APPROVED',
    'ORDER_FINALIZED',
    'ORDER_REJECTED',
    'ORDER_CANCELLED',
    'ORDER_EXPIRED',
  ],
  reject: [
    'ORDER_CHALLENGE_NOT_READ',
    '→ rejected',
    '→ rejected',
    'ORDER_ALREADY_APPROVED',
    'ORDER_FINALIZED',
    '=',
    'ORDER_CANCELLED',
    'ORDER_EXPIRED',
  ],
  cancel: [
    '→ cancelled',
    '→ cancelled',
    '→ cancelled',
    '→ cancelled',
    'ORDER_FINALIZED',
    'ORDER_REJECTED',
    '=',
    'ORDER_EXPIRED',
  ],
  finalize: [
    'ORDER_NOT_APPROVED',
    'ORDER_NOT_APPROVED',
    'ORDER_NOT_APPROVED',
    '→ finalized',
    '=',
    'ORDER_REJECTED',
    'ORDER_CANCELLED',
    'ORDER_EXPIRED',
  ],
  expire: ['=', '=', '=', '=', '=', '=', '=', '='],
}

const cases = Object.entries(expected).flatMap(([name, answers]) =>
  answers.map((answer, index) => {
    const [status, order] = Object.entries(states)[index] as [OrderStatus, OrderRecord]
    return { name: name as keyof typeof commands, status, order, answer }
  }),
)

describe('every command in every status', () => {
  test.each(cases)('$name, when $status: $answer', ({ name, order, answer }) => {
    const now = newestTransition(order).at + 10
    const outcome = applyCommand(order, commands[name], now)
    if (answer.startsWith('→ ')) {
      const status = answer.slice(2)
      expect(outcome.refusal).toBeUndefined()
      expect(outcome.order.status).toBe(status)
      const sequence = order.history.length + 1
      expect(outcome.order.history).toEqual([...order.history, { sequence, status, at: now }])
    } else {
      expect(outcome.refusal).toBe(answer === '=' ? undefined : answer)
      expect(outcome.order).toBe(order)
    }
  })

  test.each(cases)('$name, when $status: known early unless it moves', ({ name, order, answer }) => {
    const early = decideEarly(order, commands[name], newestTransition(order).at + 10)
    expect(early === undefined).toBe(answer.startsWith('→ '))
  })
})

describe('what a move leaves in the order', () => {
  test('the challenge token of the claim, and the first of its hashes', () => {
    expect(states.claimed.challengeTokenHash).toBe('phone')
    expect(applyCommand(created, commands['claim by another'], start).order.challengeTokenHash).toBe('other phone')
  })

  test('the proof of the approval', () => {
    expect(states.approved.proof).toEqual(proof)
  })

  test('what a repeated finalize needs', () => {
    expect(states.finalized.login).toEqual(login)
    expect(applyCommand(states.approved, { type: 'finalize' }, start + 5000).order).not.toHaveProperty('login')
  })

  test('nothing of what went in is changed', () => {
    const frozen = JSON.stringify(created)
    applyCommand(created, commands.claim, start)
    expect(JSON.stringify(created)).toBe(frozen)
  })

  test('times that do not run backwards, though the next instance has a slower clock', () => {
    const { history } = applyCommand(states.claimed, commands.readChallenge, start - 5000).order
    expect(history.map(({ at }) => at)).toEqual([start, start + 1000, start + 1000])
  })
})

describe('expiry', () => {
  const live = (['created', 'claimed', 'waiting_user', 'approved'] as const).map((status) => ({ status }))
  const names = Object.keys(commands) as (keyof typeof commands)[]

  test.each(live)('$status expires at its deadline, whatever comes', ({ status }) => {
    const order = states[status]
    for (const late of [0, 1, 599_999]) {
      for (const name of names) {
        const { order: expired, refusal } = applyCommand(order, commands[name], deadlineOf(order) + late)
        expect(refusal).toBe(name === 'expire' ? undefined : 'ORDER_EXPIRED')
        expect(expired.status).toBe('expired')
        expect(newestTransition(expired)).toEqual({
          sequence: order.history.length + 1,
          status: 'expired',
          at: deadlineOf(order),
        })
      }
    }
  })

  test.each(live)('$status does not expire a millisecond before', ({ status }) => {
    const order = states[status]
    const outcome = applyCommand(order, commands.expire, deadlineOf(order) - 1)
    expect(outcome).toEqual({ order })
    expect(outcome.order).toBe(order)
  })

  test('an order approved late keeps 60 seconds, one approved early what it has', () => {
    const lastMoment = created.expiresAt - 1
    const late = applyCommand(states.waiting_user, commands.approve, lastMoment).order
    expect(deadlineOf(late)).toBe(lastMoment + 60_000)
    expect(applyCommand(late, commands.finalize, lastMoment + 59_999).order.status).toBe('finalized')
    expect(applyCommand(late, commands.finalize, lastMoment + 60_000).refusal).toBe('ORDER_EXPIRED')
    expect(deadlineOf(states.approved)).toBe(created.expiresAt)
  })

  test('what is over does not expire', () => {
    for (const status of ['finalized', 'rejected', 'cancelled'] as const) {
      expect(applyCommand(states[status], commands.expire, created.expiresAt + 1).order).toBe(states[status])
    }
  })
})

describe('being remembered', () => {
  test.each(Object.entries(states))('%s: ten minutes after the end, and then not at all', (_, order) => {
    const end = forgottenAt(order)
    for (const command of Object.values(commands)) {
      expect(applyCommand(order, command, end - 1).refusal).not.toBe('ORDER_NOT_FOUND')
      expect(applyCommand(order, command, end)).toEqual({ order, refusal: 'ORDER_NOT_FOUND' })
    }
  })

  test('an end that nobody noticed counts from the deadline', () => {
    expect(forgottenAt(created)).toBe(created.expiresAt + 600_000)
    expect(forgottenAt(states.expired)).toBe(created.expiresAt + 600_000)
    expect(forgottenAt(states.cancelled)).toBe(newestTransition(states.cancelled).at + 600_000)
  })
})

describe('finalizing again', () => {
  test('answers alike for 60 seconds, and not a millisecond longer', () => {
    const { at } = newestTransition(states.finalized)
    expect(applyCommand(states.finalized, commands.finalize, at + 59_999)).toEqual({ order: states.finalized })
    expect(applyCommand(states.finalized, commands.finalize, at + 60_000).refusal).toBe('ORDER_FINALIZED')
  })
})

describe('a required confirmation code', () => {
  const waiting: OrderRecord = { ...states.waiting_user, codeRequired: true, confirmationCode: '123456' }
  const now = start + 10_000
  const approve = (order: OrderRecord, confirmationCode?: string) =>
    applyCommand(order, { type: 'approve', proof, confirmationCode }, now)

  test('approves when it is right, however many wrong ones short of three came before', () => {
    const twice = approve(approve(waiting, '000000').order, '111111').order
    expect(twice.wrongCodes).toBe(2)
    expect(approve(twice, '123456').order.status).toBe('approved')
  })

  test('is asked for when there is none, without counting', () => {
    expect(approve(waiting)).toEqual({ order: waiting, refusal: 'CONFIRMATION_CODE_REQUIRED' })
  })

  test('rejects the order at the third wrong one', () => {
    let order = waiting
    for (const wrong of ['000000', '12345', '']) {
      const outcome = approve(order, wrong)
      expect(outcome.refusal).toBe('CONFIRMATION_CODE_WRONG')
      expect(outcome.order).not.toBe(order)
      order = outcome.order
    }
    expect(order.status).toBe('rejected')
    expect(order).not.toHaveProperty('proof')
    expect(approve(order, '123456').refusal).toBe('ORDER_REJECTED')
  })

  test('is not looked at where it is compared by eye', () => {
    expect(approve(states.waiting_user, 'nonsense').order.status).toBe('approved')
  })
})
