import { spawn } from 'node:child_process'
import { existsSync } from 'node:fs'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, onTestFinished, test } from 'vitest'
import { signInClients } from '../support/clients.ts'
import { signInWith } from '../support/flows.ts'
import { type Scrape, scrape, startMeasured } from '../support/metrics.ts'
import { freePort } from '../support/redis-server.ts'

const root = fileURLToPath(new URL('../..', import.meta.url))
const page = await readFile(join(root, 'docs/metrics.md'), 'utf8')

/** The page's snippets that say they are executed, by language. */
const snippets = Object.fromEntries(
  [...page.matchAll(/<!-- executed by test\/docs -->\n\n```(\w+)\n([\s\S]*?)```/g)].map(([, language, code]) => [
    language as string,
    code as string,
  ]),
)

/** Names of the labels of a family, but for the bounds of a histogram. */
function labelsOf(name: string, { text }: Scrape): string {
  const [, labels = ''] = new RegExp(`^${name}(?:_count)?\\{(.*)\\} `, 'm').exec(text) ?? []
  return [...labels.matchAll(/(?:^|,)(\w+)="/g)].map(([, label]) => `\`${label}\``).join(', ')
}

test('the table of docs/metrics.md has the metrics of a real scrape, all of them and no others', async () => {
  const service = await startMeasured()
  await signInWith(signInClients.REST!(service.url))
  const scraped = await service.scrape()
  const rows = scraped.families
    .filter(({ name }) => name.startsWith('countersign_'))
    .map(({ name, type, help }) => `| \`${name}\` | ${type.toLowerCase()} | ${labelsOf(name, scraped)} | ${help} |`)
  expect(rows.length).toBeGreaterThan(10)
  expect(page.match(/^\| `countersign_.*$/gm)?.toSorted()).toEqual(rows.toSorted())
  for (const { name } of scraped.families) expect(name).toMatch(/^(countersign|process|nodejs)_/)
})

test('the configuration of Prometheus is that of deploy/prometheus, to the letter', async () => {
  expect(snippets.yaml).toBe(await readFile(join(root, 'deploy/prometheus/prometheus.yml'), 'utf8'))
})

test('the application of docs/metrics.md serves its metrics, and not on its own port', async () => {
  const [port, metricsPort] = [await freePort(), await freePort()]
  const folder = await mkdtemp(join(tmpdir(), 'countersign-metrics-'))
  const program = (snippets.ts ?? '')
    .replace("'countersign'", JSON.stringify(join(root, 'src/index.ts')))
    .replace('createCountersign({', "createCountersign({ store: 'sqlite::memory:', pages: false,")
    .replace('listen(3000)', `listen(${port}, '127.0.0.1')`)
    .replace('9464', String(metricsPort))
  await writeFile(join(folder, 'main.mts'), program)
  const child = spawn(process.execPath, [join(folder, 'main.mts')], { stdio: ['ignore', 'ignore', 'pipe'] })
  let errors = ''
  child.stderr.on('data', (chunk) => {
    errors += chunk
  })
  onTestFinished(async () => {
    child.kill('SIGKILL')
    await rm(folder, { recursive: true, force: true })
  })
  const health = async (): Promise<number> => {
    if (child.exitCode !== null) throw new Error(errors)
    return await fetch(`http://127.0.0.1:${port}/healthz`).then(
      ({ status }) => status,
      () => 0,
    )
  }
  await expect.poll(health).toBe(200)
  const counted = async () => (await scrape(`http://127.0.0.1:${metricsPort}`)).value('countersign_calls_total')
  await expect.poll(counted).toBeGreaterThan(0)
  expect((await fetch(`http://127.0.0.1:${port}/metrics`)).status).toBe(404)
})

test('its links lead somewhere', () => {
  for (const [, target] of page.matchAll(/\]\((?!https?:)([^)#]+)\)/g)) {
    expect(existsSync(new URL(target as string, new URL('../../docs/', import.meta.url))), target).toBe(true)
  }
})
