import { expect, onTestFinished } from 'vitest'
import type { CountersignOptions } from '../../../src/service/config.ts'
import { startService } from '../../support/service.ts'
import { Caller, origin } from './caller.ts'
import { type Death, isRetryable, judge, type Verdict, type Violation } from './judge.ts'
import { type Answer, type Ledger, newLedger } from './ledger.ts'
import { Load } from './load.ts'
import { until } from './until.ts'

/** Whether this is the long form, for `npm run nightly`: more users, and each disturbance several times. */
const isLong = process.env.CHAOS === 'long'

/** How often a disturbance is rehearsed. */
export const rounds = isLong ? 5 : 1

const users = isLong ? { signIns: 16, orders: 12 } : { signIns: 8, orders: 6 }
const patientOrders = 10

/** Least number of sign-ins and of orders before a disturbance, and after it. */
const enough = { signIns: 25, orders: 12 }

/** What came of a rehearsal. */
interface Outcome extends Verdict {
  /** In words: how much was done, and what went wrong. */
  readonly summary: string
}

/** The servers behind a store. */
export interface Topology extends AsyncDisposable {
  /** Address of the store. */
  readonly url: string
  /** Resolves once every server is there and agrees with the others. */
  settled(): Promise<void>
}

/** Rehearses a disturbance, and expects no violation but those that asynchronous replication explains. */
export async function expectNothingUnexplained(topology: Topology, disturb: () => Promise<Death[]>): Promise<void> {
  for (let round = 0; round < rounds; round++) {
    const { summary, unexplained } = await rehearse(topology, disturb)
    if (isLong) console.log(summary)
    expect(
      unexplained.slice(0, 20).map(({ kind, detail }) => `${kind}: ${detail}`),
      summary,
    ).toEqual([])
  }
}

/**
 * Lets something happen to the servers while users use two services on them, until the servers agree again, and judges
 * what the users saw.
 */
async function rehearse(topology: Topology, disturb: () => Promise<Death[]>): Promise<Outcome> {
  await topology.settled()
  const options = { store: topology.url, secret: 'a secret for tests and for nothing else', trustedOrigins: [origin] }
  const urls = [await startPersistently(options), await startPersistently(options)] as const
  const ledger = newLedger()
  const caller = new Caller(urls, ledger)
  const load = new Load(caller, ledger)
  onTestFinished(() => load.abandon())
  load.start(users)
  await load.startPatientOrders(patientOrders)
  await moreDone(load)
  const deaths = await disturb()
  // A process that starts now may find another master than one that has been there all the time.
  caller.replace(1, await startPersistently(options))
  await topology.settled()
  await moreDone(load)
  await load.stop()
  await load.audit()
  const verdict = judge(ledger, deaths)
  return { ...verdict, summary: summaryOf(ledger, verdict) }
}

/** Starts a service, and returns its address. */
async function startPersistently(options: CountersignOptions): Promise<string> {
  return (await persistently(() => startService(options))).url
}

/** Opens something on a store as an orchestrator does, which tries again while the store cannot be opened. */
export async function persistently<Opened>(open: () => Promise<Opened>): Promise<Opened> {
  let opened: Opened
  await until('a new process opens the store', async () => {
    opened = await open()
    return true
  })
  return opened!
}

async function moreDone({ done }: Load): Promise<void> {
  const before = { ...done }
  await until('users sign in and finish orders', () =>
    (['signIns', 'orders'] as const).every((what) => done[what] >= before[what] + enough[what]),
  )
}

function summaryOf({ nonces, orders, sessions, unmade }: Ledger, { notReplicated, unexplained }: Verdict): string {
  const answers: Answer[] = [
    ...unmade,
    ...nonces.flatMap(({ uses }) => uses),
    ...orders.flatMap(({ calls, watches }) => [...calls, ...watches.flatMap(({ failures }) => failures)]),
  ]
  const events = orders.flatMap(({ watches }) => watches.flatMap(({ seen }) => seen)).length
  const did = `${nonces.length} nonces, ${sessions.size} sessions, ${orders.length} orders, ${events} events`
  const errors = counted(answers.filter(({ outcome }) => isRetryable(outcome)).map(({ outcome }) => outcome))
  const kinds = (violations: readonly Violation[]) => counted(violations.map(({ kind }) => kind))
  return `${did}; told to come again: ${errors}; not replicated: ${kinds(notReplicated)}; unexplained: ${kinds(unexplained)}`
}

function counted(words: readonly string[]): string {
  const counts = Object.entries(Object.groupBy(words, (word) => word)).map(([word, all]) => `${all?.length} ${word}`)
  return counts.join(', ') || 'none'
}
