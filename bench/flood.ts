import { setTimeout as pause } from 'node:timers/promises'
import { RedisServer } from '../test/support/redis-server.ts'
import { Http1Pool } from './http1.ts'
import type { Ratios } from './ratios.ts'
import { startCountersign } from './servers.ts'
import { type Load, median, percentile, printTable, takeTurns } from './turns.ts'

const concurrency = 4
/** Calls of all other clients in a second, each from an address of its own. */
const callsPerSecond = 200
const floodConcurrency = 8
/** Calls in a second of the one that floods; its allowance is four. */
const floodPerSecond = 1000
const path = '/api/auth/wallet/nonce'

/** What other clients notice of one that floods the service. */
export async function measureFlood(core: number | undefined, short: boolean): Promise<Ratios> {
  await using redis = await RedisServer.start()
  await using server = await startCountersign(redis.url, { core, limited: true })
  using connections = new Http1Pool(server.port)
  using flooding = new Http1Pool(server.port)
  const turnMs = short ? 100 : 1000
  let client = 0
  const calls = (times: number[]): Promise<unknown> =>
    paced(concurrency, callsPerSecond, turnMs, async (worker) => {
      client++
      const address = `10.${(client >> 16) & 255}.${(client >> 8) & 255}.${client & 255}`
      const startedAt = performance.now()
      // A refused call rejects, and ends the run.
      await connections.of(worker).post(path, 'application/json', '{}', `x-forwarded-for: ${address}\r\n`)
      times.push(performance.now() - startedAt)
    })
  let refused = 0
  const flood = (): Promise<unknown> =>
    paced(floodConcurrency, floodPerSecond, turnMs, async (worker) => {
      const from = 'x-forwarded-for: 192.0.2.1\r\n'
      await flooding
        .of(worker)
        .post(path, 'application/json', '{}', from)
        .catch(() => refused++)
    })
  const alone: Load = (measured) => measured(() => timesOf(calls))
  const beside: Load = (measured) => measured(() => timesOf((times) => Promise.all([calls(times), flood()])))
  const turns = await takeTurns(
    [
      { name: 'alone', server, load: alone },
      { name: 'beside a flood', server, load: beside },
    ],
    { warmUpRounds: 1, rounds: short ? 2 : 8 },
  )
  const p99 = (name: string): number => median((turns.get(name) ?? []).map((turn) => turn.p99))
  printTable(
    `IssueNonce of other clients while one floods; ${refused} calls refused`,
    ['p99'],
    [...turns.keys()].map((name) => [name, `${p99(name).toFixed(1)} ms`]),
  )
  return { 'flood: p99 of other clients alone ÷ beside it': p99('alone') / p99('beside a flood') }
}

async function timesOf(work: (times: number[]) => Promise<unknown>): Promise<readonly number[]> {
  const times: number[] = []
  await work(times)
  return Number.isNaN(percentile(times, 0.5)) ? [0] : times
}

/** Calls at most so many times a second for so long, some at once. */
async function paced(
  concurrency: number,
  perSecond: number,
  ms: number,
  call: (worker: number) => Promise<void>,
): Promise<void> {
  const betweenMs = (concurrency * 1000) / perSecond
  const endsAt = performance.now() + ms
  const work = async (worker: number): Promise<void> => {
    for (let dueAt = endsAt - ms + (worker * betweenMs) / concurrency; dueAt < endsAt; dueAt += betweenMs) {
      await pause(Math.max(0, dueAt - performance.now()))
      await call(worker)
    }
  }
  await Promise.all(Array.from({ length: concurrency }, (_, worker) => work(worker)))
}
