import { describe, expect, test } from 'vitest'
import { newestTransition, type OrderRecord, type StoredProof } from '../../../src/core/order/order.ts'
import {
  applyCommand,
  deadlineOf,
  decideEarly,
  forgottenAt,
  isTerminal,
  type OrderCommand,
} from '../../../src/core/order/states.ts'
import type { OrderStatus } from '../../../src/shared/orders.ts'

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
const login = { userId: 'user', seedHash: 'seed', sessionId: 'session' }

const created: OrderRecord = {
  orderId: 'order',
  kind: 'login',
  status: 'created',
  history: [{ sequence: 1, status: 'created', at: start }],
  origin: 'https://app.example',
  appName: 'Example',
  requester: { ip: '', userAgent: '' },
  returnTo: '/',
  challengeId: 'challenge',
  nonce: 'nonce',
  issuedAt: start,
  expiresAt: start + ttlMs,
  message: 'message',
  confirmationCode: '42',
  claimTokenHash: 'claim',
  desktopTokenHash: 'desktop',
}

const commands = {
  claim: { type: 'claim', challengeTokenHashes: ['phone'] },
  'claim by another': { type: 'claim', challengeTokenHashes: ['other phone', 'other phone, older secret'] },
  'claim after a change of secret': { type: 'claim', challengeTokenHashes: ['phone, newer secret', 'phone'] },
  preview: { type: 'preview' },
  readChallenge: { type: 'readChallenge' },
  handOver: { type: 'handOver', ticketHash: 'ticket', expiresAt: start + 60_000 },
  redeem: { type: 'redeem', challengeTokenHashes: ['browser'] },
  'redeem by another': { type: 'redeem', challengeTokenHashes: ['other browser', 'other browser, older secret'] },
  'redeem after a change of secret': { type: 'redeem', challengeTokenHashes: ['browser, newer secret', 'browser'] },
  approve: { type: 'approve', proof },
  'approve otherwise': { type: 'approve', proof: otherProof },
  beginContractCheck: { type: 'beginContractCheck' },
  undoContractCheck: { type: 'undoContractCheck' },
  reject: { type: 'reject' },
  cancel: { type: 'cancel' },
  finalize: { type: 'finalize', returnCode: 'right', login },
  'finalize without a code': { type: 'finalize', returnCode: 'absent', login },
  'finalize with a wrong code': { type: 'finalize', returnCode: 'wrong', login },
  settleTakeBack: { type: 'settleTakeBack', sessionEnded: true },
  expire: { type: 'expire' },
} satisfies Record<string, OrderCommand>

/** Carries out commands that must all change the order, a second apart. */
function following(first: OrderRecord, ...names: (keyof typeof commands)[]): OrderRecord {
  return names.reduce((order, name) => {
    const { at } = newestTransition(order)
    const outcome = applyCommand(order, commands[name], name === 'expire' ? deadlineOf(order) : at + 1000)
    expect(outcome.refusal).toBeUndefined()
    expect(outcome.order).not.toBe(order)
    return outcome.order
  }, first)
}

const after = (...names: (keyof typeof commands)[]): OrderRecord => following(created, ...names)

const waiting = after('claim', 'readChallenge')
const finalized = following(waiting, 'approve', 'finalize')
const withCode = following({ ...waiting, confirmationCode: '', returnCodes: true }, 'approve')
/** With one wrong return code less than reject it. */
const guessedAt = { ...withCode, wrongReturnCodes: 2 }

const states = {
  created,
  claimed: after('claim'),
  'handed over, claimed': after('claim', 'handOver'),
  'taken over, claimed': after('claim', 'handOver', 'redeem'),
  waiting_user: waiting,
  'handed over': following(waiting, 'handOver'),
  'taken over': following(waiting, 'handOver', 'redeem'),
  'waiting, with two contract checks': { ...waiting, contractChecks: 2 },
  'waiting, with three contract checks': { ...waiting, contractChecks: 3 },
  approved: following(waiting, 'approve'),
  'approved, though handed over': following(waiting, 'handOver', 'approve'),
  'approved, taken over': following(waiting, 'handOver', 'redeem', 'approve'),
  'approved, with a return code': withCode,
  'approved, with two wrong return codes': guessedAt,
  'approved, known computer': { ...withCode, approval: { knownComputer: true, rememberComputer: false } },
  finalized,
  'finalized, sign': { ...finalized, kind: 'sign', login: undefined },
  'finalized, link': { ...finalized, kind: 'link', login: undefined },
  'finalized, with a return code': following(withCode, 'finalize'),
  'finalized, with two wrong return codes': following(guessedAt, 'finalize'),
  'finalized, with three wrong return codes': { ...following(guessedAt, 'finalize'), wrongReturnCodes: 3 },
  'taken back': following(finalized, 'reject'),
  'taken back, settled': following(finalized, 'reject', 'settleTakeBack'),
  'taken back, with a return code': following(withCode, 'finalize', 'reject'),
  rejected: following(waiting, 'reject'),
  'rejected, once approved': following(waiting, 'approve', 'reject'),
  'rejected, handed over': following(waiting, 'handOver', 'reject'),
  cancelled: after('claim', 'cancel'),
  expired: after('claim', 'expire'),
} satisfies Record<string, Omit<OrderRecord, 'login'> & { login?: object | undefined }>

type StateName = keyof typeof states
type CommandName = keyof typeof commands

const redeemed = { redeem: '=', 'redeem after a change of secret': '=' }
const takenBack = { reject: '=', finalize: 'REJECTED', ...guessing('REJECTED', 'REJECTED') }

/** What a command finds in the terminal statuses, and in those in which a phone has the order. */
const over = ['FINALIZED', 'REJECTED', 'CANCELLED', 'EXPIRED']
const taken = ['ALREADY_CLAIMED', 'ALREADY_CLAIMED', 'ALREADY_CLAIMED']
const finalizing = row('NOT_APPROVED', 'NOT_APPROVED', 'NOT_APPROVED', '→ finalized', '=', ...over.slice(1))

/** What a command finds in a status if nothing more is said of it below. Reasons are without ORDER_. */
const byStatus: Readonly<Record<CommandName, Readonly<Record<OrderStatus, string>>>> = {
  claim: row('→ claimed', '=', '=', '=', ...over),
  'claim by another': row('→ claimed', ...taken, ...over),
  'claim after a change of secret': row('→ claimed', '=', '=', '=', ...over),
  preview: row('=', ...taken, ...over),
  readChallenge: row('NOT_READ', '→ waiting_user', '=', '=', ...over),
  handOver: row('NOT_READ', '+', '+', 'ALREADY_APPROVED', ...over),
  redeem: always('HANDOVER_INVALID'),
  'redeem by another': always('HANDOVER_INVALID'),
  'redeem after a change of secret': always('HANDOVER_INVALID'),
  approve: row('NOT_READ', 'NOT_READ', '→ approved', '=', '=', ...over.slice(1)),
  'approve otherwise': row('NOT_READ', 'NOT_READ', '→ approved', 'ALREADY_APPROVED', ...over),
  beginContractCheck: row('NOT_READ', 'NOT_READ', '+', 'ALREADY_APPROVED', ...over),
  // Its caller gets no outcome.
  undoContractCheck: row('=', '=', '+', '=', '=', '=', '=', '='),
  // In finalized: the take-back is stored, and the status stays.
  reject: row('NOT_READ', '→ rejected', '→ rejected', '→ rejected', '+', '=', 'CANCELLED', 'EXPIRED'),
  cancel: row('→ cancelled', '→ cancelled', '→ cancelled', '→ cancelled', 'FINALIZED', 'REJECTED', '=', 'EXPIRED'),
  finalize: finalizing,
  'finalize without a code': finalizing,
  'finalize with a wrong code': finalizing,
  settleTakeBack: always('='),
  expire: always('='),
}

/** What is different in some states. `+` changes the order in its status, `+ X` also refuses. */
const exceptions: Partial<Record<StateName, Partial<Record<CommandName, string>>>> = {
  'handed over, claimed': redeeming('+'),
  'taken over, claimed': redeemed,
  'handed over': redeeming('+'),
  'taken over': redeemed,
  'waiting, with three contract checks': { beginContractCheck: 'RATE_LIMITED' },
  'approved, though handed over': redeeming('ALREADY_APPROVED'),
  'approved, taken over': redeemed,
  'approved, with a return code': guessing('+ RETURN_CODE_WRONG'),
  'approved, with two wrong return codes': guessing('→ rejected RETURN_CODE_WRONG'),
  'finalized, sign': { reject: 'FINALIZED' },
  'finalized, with a return code': guessing('+ RETURN_CODE_WRONG'),
  'finalized, with two wrong return codes': guessing('+ RETURN_CODE_WRONG'),
  'finalized, with three wrong return codes': { finalize: 'FINALIZED', ...guessing('FINALIZED', 'FINALIZED') },
  'taken back': { ...takenBack, settleTakeBack: '+' },
  'taken back, settled': takenBack,
  'taken back, with a return code': { ...takenBack, settleTakeBack: '+' },
  'rejected, handed over': redeeming('REJECTED'),
}

function redeeming(answer: string): Partial<Record<CommandName, string>> {
  return { redeem: answer, 'redeem by another': answer, 'redeem after a change of secret': answer }
}

function guessing(wrong: string, absent = 'RETURN_CODE_REQUIRED'): Partial<Record<CommandName, string>> {
  return { 'finalize without a code': absent, 'finalize with a wrong code': wrong }
}

function row(...answers: string[]): Record<OrderStatus, string> {
  const statuses = ['created', 'claimed', 'waiting_user', 'approved', 'finalized', 'rejected', 'cancelled', 'expired']
  return Object.fromEntries(statuses.map((status, i) => [status, answers[i]])) as Record<OrderStatus, string>
}

function always(answer: string): Record<OrderStatus, string> {
  return row(...Array.from({ length: 8 }, () => answer))
}

/** The reason that a table's word stands for. */
function reasonFor(word: string): string {
  if (/^(HANDOVER_|RETURN_CODE_|RATE_LIMITED)/.test(word)) return word
  return word === 'NOT_READ' ? 'ORDER_CHALLENGE_NOT_READ' : `ORDER_${word}`
}

const cases = (Object.keys(states) as StateName[]).flatMap((state) =>
  (Object.keys(commands) as CommandName[]).map((name) => {
    const order = states[state] as OrderRecord
    return { name, state, order, answer: exceptions[state]?.[name] ?? byStatus[name][order.status] }
  }),
)

describe('every command in every state', () => {
  test.each(cases)('$name, $state: $answer', ({ name, order, answer }) => {
    const now = newestTransition(order).at + 10
    const outcome = applyCommand(order, commands[name], now)
    const [, mark, status, refusal] = /^(?:(=|→|\+) ?)?([a-z_]+)? ?([A-Z_]+)?$/.exec(answer) as string[]
    expect(outcome.refusal).toBe(refusal === undefined ? undefined : reasonFor(refusal))
    expect(outcome.order === order).toBe(mark === '=' || mark === undefined)
    expect(outcome.order.status).toBe(status ?? order.status)
    const sequence = order.history.length + 1
    const step = status === undefined ? [] : [{ sequence, status, at: now }]
    expect(outcome.order.history).toEqual([...order.history, ...step])
  })

  test.each(cases)('$name, $state: known early unless the order goes on', ({ name, order, answer }) => {
    const early = decideEarly(order, commands[name], newestTransition(order).at + 10)
    expect(early === undefined).toBe(/^(→ [a-z_]+|\+)$/.test(answer))
  })
})

describe('what a move leaves in the order', () => {
  test('the challenge token of the claim, and the first of its hashes', () => {
    expect(states.claimed.challengeTokenHash).toBe('phone')
    expect(applyCommand(created, commands['claim by another'], start).order.challengeTokenHash).toBe('other phone')
  })

  test('the challenge token of who takes over, the one before it, and when that was', () => {
    expect(states['taken over']).toMatchObject({
      challengeTokenHash: 'browser',
      formerTokenHashes: ['phone'],
      handOver: { ticketHash: 'ticket', redeemedAt: newestTransition(waiting).at + 1000 },
    })
    const again = { type: 'handOver', ticketHash: 'second ticket', expiresAt: start + 90_000 } as const
    const { handOver } = applyCommand(states['taken over'], again, start + 5000).order
    expect(handOver).toEqual({ ticketHash: 'second ticket', expiresAt: start + 90_000 })
  })

  test('the first token, and the last seven, of however many hand-overs', () => {
    let order: OrderRecord = states['taken over']
    for (let n = 2; n <= 20; n++) {
      order = applyCommand(order, { type: 'handOver', ticketHash: `${n}`, expiresAt: start + 90_000 }, start).order
      order = applyCommand(order, { type: 'redeem', challengeTokenHashes: [`browser ${n}`] }, start).order
    }
    const last = [13, 14, 15, 16, 17, 18, 19].map((n) => `browser ${n}`)
    expect(order.formerTokenHashes).toEqual(['phone', ...last])
    expect(order.challengeTokenHash).toBe('browser 20')
  })

  test('that a link was taken back, and then what became of the wallet', () => {
    const starter = { userId: 'user', sessionId: 'session', adapterId: 'nimiq', address: '', firstWallet: undefined }
    const { order } = applyCommand({ ...finalized, kind: 'link', starter }, commands.reject, start + 5000)
    expect(order.takenBack).toEqual({})
    const settled = applyCommand(order, { type: 'settleTakeBack', walletUnlinked: false }, start + 5000).order
    expect(settled.takenBack).toEqual({ walletUnlinked: false })
    expect(applyCommand(settled, { type: 'settleTakeBack', walletUnlinked: true }, start + 5000).order).toBe(settled)
  })

  test('that it was taken back, and then what became of the session', () => {
    expect(states['taken back']).toEqual({ ...finalized, takenBack: {} })
    expect(states['taken back, settled']).toEqual({ ...finalized, takenBack: { sessionEnded: true } })
    const again = applyCommand(states['taken back, settled'], { type: 'settleTakeBack', sessionEnded: false }, start)
    expect(again.order).toBe(states['taken back, settled'])
  })

  test('how often an RPC was asked, and has not failed, until the third answer', () => {
    let order: OrderRecord = waiting
    for (const [command, count] of [
      [commands.undoContractCheck, 0],
      [commands.beginContractCheck, 1],
      [commands.beginContractCheck, 2],
      [commands.beginContractCheck, 3],
      [commands.undoContractCheck, 2],
      [commands.beginContractCheck, 3],
    ] as const) {
      order = applyCommand(order, command, start + 5000).order
      expect(order.contractChecks).toBe(count)
    }
    expect(applyCommand(order, commands.beginContractCheck, start + 5000)).toEqual({ order, refusal: 'RATE_LIMITED' })
    expect(applyCommand(order, commands.approve, start + 5000).order.status).toBe('approved')
  })

  test('the proof of the approval', () => {
    expect(states.approved.proof).toEqual(proof)
  })

  test('what a repeated finalize needs', () => {
    expect(finalized.login).toEqual(login)
    expect(
      applyCommand(states.approved, { type: 'finalize', returnCode: 'absent' }, start + 5000).order,
    ).not.toHaveProperty('login')
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
  /** Commands without a caller of their own. */
  const untold = new Set<string>(['expire', 'settleTakeBack', 'undoContractCheck'])
  const live = Object.entries(states)
    .map(([state, order]) => ({ state, order: order as OrderRecord }))
    .filter(({ order }) => !isTerminal(order.status))

  test.each(live)('$state expires at its deadline, for every command', ({ order }) => {
    for (const late of [0, 1, 599_999]) {
      for (const command of Object.values(commands)) {
        const now = deadlineOf(order) + late
        const { order: expired, refusal } = applyCommand(order, command, now)
        expect(expired.status).toBe('expired')
        // Whoever comes next, when the expiry is stored, is told the same.
        expect(applyCommand(expired, command, now)).toEqual({ order: expired, refusal })
        if (command.type === 'redeem') expect(refusal).toMatch(/^(ORDER_EXPIRED|HANDOVER_INVALID)$/)
        else if (untold.has(command.type)) expect(refusal).toBeUndefined()
        else expect(refusal).toBe('ORDER_EXPIRED')
        expect(newestTransition(expired)).toEqual({
          sequence: order.history.length + 1,
          status: 'expired',
          at: deadlineOf(order),
        })
      }
    }
  })

  test.each(live)('$state does not expire a millisecond before', ({ order }) => {
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

  test('an order whose return code is to be entered keeps 180 seconds, and 60 if the computer is known', () => {
    const lastMoment = created.expiresAt - 1
    const returning: OrderRecord = { ...waiting, confirmationCode: '', returnCodes: true }
    for (const [knownComputer, life] of [
      [false, 180_000],
      [true, 60_000],
    ] as const) {
      const approval = { knownComputer, rememberComputer: false }
      const approved = applyCommand(returning, { type: 'approve', proof, approval }, lastMoment).order
      expect(deadlineOf(approved)).toBe(lastMoment + life)
      expect(applyCommand(approved, commands.finalize, lastMoment + life - 1).order.status).toBe('finalized')
      expect(applyCommand(approved, commands.finalize, lastMoment + life).refusal).toBe('ORDER_EXPIRED')
    }
  })

  test('what is over does not expire', () => {
    for (const status of ['finalized', 'rejected', 'cancelled'] as const) {
      expect(applyCommand(states[status], commands.expire, created.expiresAt + 1).order).toBe(states[status])
    }
  })
})

describe('being remembered', () => {
  test.each(Object.entries(states))('%s: ten minutes after the end, and then not at all', (_, order) => {
    const end = forgottenAt(order as OrderRecord)
    for (const command of Object.values(commands)) {
      expect(applyCommand(order as OrderRecord, command, end - 1).refusal).not.toBe('ORDER_NOT_FOUND')
      expect(applyCommand(order as OrderRecord, command, end)).toEqual({ order, refusal: 'ORDER_NOT_FOUND' })
    }
  })

  test('an end that went unnoticed counts from the deadline', () => {
    expect(forgottenAt(created)).toBe(created.expiresAt + 600_000)
    expect(forgottenAt(states.expired)).toBe(created.expiresAt + 600_000)
    expect(forgottenAt(states.cancelled)).toBe(newestTransition(states.cancelled).at + 600_000)
  })
})

describe('finalizing again', () => {
  test('answers alike for 60 seconds, and not a millisecond longer', () => {
    const { at } = newestTransition(finalized)
    expect(applyCommand(finalized, commands.finalize, at + 59_999)).toEqual({ order: finalized })
    expect(applyCommand(finalized, commands.finalize, at + 60_000).refusal).toBe('ORDER_FINALIZED')
  })

  test('after 60 seconds looks at no return code', () => {
    const order = states['finalized, with a return code']
    const { at } = newestTransition(order)
    for (const name of ['finalize', 'finalize without a code', 'finalize with a wrong code'] as const) {
      expect(applyCommand(order, commands[name], at + 60_000)).toEqual({ order, refusal: 'ORDER_FINALIZED' })
    }
  })

  test('of an order that was taken back is told so as long as it is remembered', () => {
    const order = states['taken back']
    expect(applyCommand(order, commands.finalize, forgottenAt(order) - 1).refusal).toBe('ORDER_REJECTED')
  })
})

describe('a ticket', () => {
  const ticketed = states['handed over']
  const { expiresAt } = commands.handOver

  test('can be redeemed until it is too old', () => {
    expect(applyCommand(ticketed, commands.redeem, expiresAt - 1).order.challengeTokenHash).toBe('browser')
    expect(applyCommand(ticketed, commands.redeem, expiresAt)).toEqual({
      order: ticketed,
      refusal: 'HANDOVER_INVALID',
    })
  })

  test('gets the same token again for 60 seconds, also when it has become too old', () => {
    const late = applyCommand(ticketed, commands.redeem, expiresAt - 1).order
    expect(applyCommand(late, commands.redeem, expiresAt + 59_998)).toEqual({ order: late })
    expect(applyCommand(late, commands.redeem, expiresAt + 59_999).refusal).toBe('HANDOVER_INVALID')
  })
})
