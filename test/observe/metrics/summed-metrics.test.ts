import { expect, test } from 'vitest'
import { Metrics } from '../../../src/observe/metrics/metrics.ts'
import { SummedMetrics } from '../../../src/observe/metrics/summed-metrics.ts'
import { Scrape } from '../../support/metrics.ts'

/** The metrics of a process in which so many orders were started, `watchers` are open, and which is ready or not. */
async function processWith(orders: number, watchers: number, isReady = true) {
  const metrics = new Metrics()
  metrics.attach({
    methods: [],
    adapters: [],
    ceilingUses: () => [],
    watchers: () => watchers,
    isReady: async () => isReady,
  })
  for (let n = 0; n < orders; n++) {
    metrics.observeOrder({ status: 'created' } as Parameters<Metrics['observeOrder']>[0])
    metrics.observeStore({ operation: 'get', failure: undefined, durationMs: 1 })
  }
  // As it arrives from another process.
  return JSON.parse(JSON.stringify(await metrics.values()))
}

const created = (scrape: Scrape) => scrape.value('countersign_orders_total', { status: 'created' })
const reads = (scrape: Scrape) => scrape.counts('countersign_store_operation_duration_seconds', 'operation').get
const textOf = async (sum: SummedMetrics, serving: number) => new Scrape(await sum.text(serving))

test('what workers count is added up, and readiness is that of the worker that is least ready', async () => {
  const sum = new SummedMetrics()
  sum.heard(1, await processWith(2, 10))
  sum.heard(2, await processWith(3, 20, false))
  const scrape = await textOf(sum, 2)
  expect([created(scrape), reads(scrape)]).toEqual([5, 5])
  expect(scrape.value('countersign_watchers')).toBe(30)
  expect(scrape.value('countersign_ready')).toBe(0)
  expect(scrape.value('countersign_build_info')).toBe(1)
  expect(scrape.value('countersign_workers')).toBe(2)
})

test('what a worker had counted stays when it ends, and what it held does not', async () => {
  const sum = new SummedMetrics()
  for (let id = 1; id <= 3; id++) {
    sum.heard(id, await processWith(1, 5))
    sum.heard(id, await processWith(2, 10))
    sum.ended(id)
    // A second time, it is not there.
    sum.ended(id)
  }
  sum.heard(4, await processWith(1, 7))
  const scrape = await textOf(sum, 1)
  expect([created(scrape), reads(scrape)]).toEqual([7, 7])
  expect(scrape.value('countersign_watchers')).toBe(7)
  expect(scrape.value('countersign_ready')).toBe(1)
  expect(scrape.text.match(/^# TYPE countersign_orders_total /gm)).toHaveLength(1)
})

test('without a worker, the service is not ready', async () => {
  const scrape = await textOf(new SummedMetrics(), 0)
  expect(scrape.families.map(({ name }) => name)).toContain('countersign_ready')
  expect(scrape.value('countersign_ready')).toBe(0)
})
