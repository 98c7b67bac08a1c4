import { readFile } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'
import { signInClients } from '../support/clients.ts'
import { run } from '../support/command.ts'
import { completeOrder, signInWith } from '../support/flows.ts'
import { startMeasured } from '../support/metrics.ts'
import { hasPart } from '../support/optional.ts'
import { orderClients } from '../support/orders.ts'
import { type Prometheus, prometheusFolder, runPrometheus } from '../support/prometheus.ts'
import { rest } from '../support/rest.ts'

interface Panel {
  readonly title: string
  readonly targets?: readonly { readonly expr: string }[]
}

interface Dashboard {
  readonly panels: readonly Panel[]
  readonly templating: {
    readonly list: readonly { readonly name: string; readonly query: string | { readonly query: string } }[]
  }
}

const dashboard: Dashboard = JSON.parse(
  await readFile(new URL('../../deploy/grafana/countersign.json', import.meta.url), 'utf8'),
)

/** A query as Grafana sends it, with all jobs and instances, and the shortest interval that this scraping allows. */
function filledIn(query: string): string {
  return query.replaceAll('$__rate_interval', '3s').replaceAll(/\$(job|instance)\b/g, '.*')
}

/** The left side of an alert's condition. The right side is a number. */
function measured(query: string): string {
  return query.replace(/ (==|>|<) [\d.]+$/, '')
}

async function findings(prometheus: Prometheus, queries: readonly string[]): Promise<Record<string, boolean>> {
  const found = queries.map(async (query) => [query, (await prometheus.query(query)).length > 0] as const)
  return Object.fromEntries(await Promise.all(found))
}

test.skipIf(!hasPart('prometheus'))(
  'every query of the dashboard and every alert finds what a real Prometheus has scraped',
  async () => {
    // Limits that the traffic hits.
    const { url, metricsUrl } = await startMeasured({ rateLimit: true, limits: { orders: 40 } })
    const prometheus = await runPrometheus(metricsUrl)
    const traffic = async (): Promise<void> => {
      for (const protocol of ['REST', 'Connect JSON over HTTP/1.1', 'gRPC-Web', 'gRPC through connect-node']) {
        // On a slow machine, until the rate limit is hit.
        await signInWith(signInClients[protocol]!(url)).catch(() => {})
      }
      await rest(url, '/session')
      await fetch(`${url}/readyz`)
    }
    await completeOrder(orderClients.REST!(url))
    const started = Array.from({ length: 130 }, () => rest(url, '/cross-device/start', { kind: 'login' }))
    expect(new Set((await Promise.all(started)).map(({ status }) => status))).toEqual(new Set([200, 503, 429]))

    const panels = dashboard.panels.flatMap(({ targets = [] }) => targets.map(({ expr }) => filledIn(expr)))
    expect(panels.length).toBeGreaterThan(25)
    const alerts = await prometheus.alerts()
    const queries = [...panels, ...alerts.map(({ query }) => measured(query).replaceAll('[5m]', '[3s]'))]
    const all = Object.fromEntries(queries.map((query) => [query, true]))
    await expect
      .poll(
        async () => {
          await traffic()
          return await findings(prometheus, queries)
        },
        { interval: 500 },
      )
      .toEqual(all)

    await expect
      .poll(async () => (await prometheus.alerts()).map(({ health }) => health))
      .toEqual(alerts.map(() => 'ok'))
    // As they are, with their limits.
    for (const { query } of alerts) await prometheus.query(query)
    expect((await prometheus.query('up'))[0]?.value[1]).toBe('1')
    expect((await prometheus.query('countersign_orders_total{status="finalized"}'))[0]?.value[1]).toBe('1')
    for (const { query } of dashboard.templating.list) {
      const [, selector, label] =
        /^label_values\((.*), (\w+)\)$/.exec(typeof query === 'string' ? query : query.query) ?? []
      if (selector === undefined || label === undefined) continue
      expect(await prometheus.labelValues(label, filledIn(selector)), selector).toHaveLength(1)
    }
  },
)

test.skipIf(!hasPart('prometheus'))('each alert is silent while all is well, and fires if not', async () => {
  const cases = fileURLToPath(new URL('alerts.test.yml', import.meta.url))
  const rules = await readFile(`${prometheusFolder}/alerts.yml`, 'utf8')
  const tried = await readFile(cases, 'utf8')
  const names = [...rules.matchAll(/- alert: (\w+)/g)].map(([, name]) => name as string)
  expect(names.length).toBeGreaterThan(10)
  for (const name of names) {
    const outcomes = tried.match(new RegExp(`alertname: ${name}\\n`, 'g')) ?? []
    expect(outcomes.length, `${name} is tried both ways`).toBe(2)
  }
  // promtool says on its output what went wrong.
  const { stdout } = await run('promtool', ['test', 'rules', cases]).catch((failed) => failed)
  expect(stdout).toContain('SUCCESS')
  await run('promtool', ['check', 'config', `${prometheusFolder}/prometheus.yml`])
})
