import { spawn } from 'node:child_process'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { signInClients } from '../support/clients.ts'
import { signInWith } from '../support/flows.ts'
import { type Scrape, scrape, startMeasured } from '../support/metrics.ts'
import { freePort } from '../support/redis-server.ts'
import { readFromRoot } from '../support/repository.ts'
import { withSources, workFolder } from '../support/snippets.ts'

const page = await readFromRoot('docs/metrics.md')

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

test('the example of an application serves its metrics, and not on its own port', async () => {
  const [port, metricsPort] = [await freePort(), await freePort()]
  const folder = await workFolder()
  const program = withSources(await readFromRoot('examples/metrics/application.ts'))
    .replace('createCountersign({', "createCountersign({ store: 'sqlite::memory:', pages: false,")
    .replace('listen(3000)', `listen(${port}, '127.0.0.1')`)
    .replace('9464', String(metricsPort))
  await writeFile(join(folder, 'main.mts'), program)
  const child = spawn(process.execPath, [join(folder, 'main.mts')], { stdio: ['ignore', 'ignore', 'pipe'] })
  let errors = ''
  child.stderr.on('data', (chunk) => {
    errors += chunk
  })
  onTestFinished(() => void child.kill('SIGKILL'))
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
