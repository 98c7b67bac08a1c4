import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { freePort } from '../support/redis-server.ts'
import { readFromRoot } from '../support/repository.ts'
import { rest } from '../support/rest.ts'
import { spawnService, startService } from '../support/service.ts'
import { runTypeScript, withSources, workFolder } from '../support/snippets.ts'
import { callSpans, registerSdk } from '../support/tracing.ts'

registerSdk()

const names = ['otel.mjs', 'application.ts', 'client.ts']
const [sdk = '', application = '', client = ''] = await Promise.all(
  names.map((name) => readFromRoot(`examples/tracing/${name}`)),
)
const caller = { traceparent: `00-${'a'.repeat(32)}-${'b'.repeat(16)}-01` }

/** A folder with otel.mjs in it. */
async function folderWithSdk(): Promise<string> {
  const folder = await workFolder()
  await writeFile(join(folder, 'otel.mjs'), sdk)
  return folder
}

test('the command with otel.mjs prints its spans, the last ones when it stops', async () => {
  const folder = await folderWithSdk()
  const service = await spawnService({
    COUNTERSIGN_TRACING: 'on',
    COUNTERSIGN_STORE: 'sqlite::memory:',
    NODE_OPTIONS: `--import ${join(folder, 'otel.mjs')}`,
  })
  expect((await rest(service.url, '/wallet/nonce', {}, caller)).status).toBe(200)
  expect(await service.stop()).toBe(0)
  expect(service.log()).toContain("name: 'countersign.v1.SignInService/IssueNonce'")
  expect(service.log()).toContain(`traceId: '${'a'.repeat(32)}'`)
  expect(service.log()).not.toContain('no OpenTelemetry SDK')
})

test('the application begins traces of its own, which link to those of callers', async () => {
  const folder = await folderWithSdk()
  const port = await freePort()
  const program = withSources(application)
    .replace('createCountersign({', `createCountersign({ store: 'sqlite::memory:', port: ${port},`)
    .concat("\nprocess.once('SIGTERM', () => countersign.close(0))\n")
  await writeFile(join(folder, 'main.ts'), program)
  const child = spawn(process.execPath, ['--import', join(folder, 'otel.mjs'), join(folder, 'main.ts')])
  onTestFinished(() => void child.kill('SIGKILL'))
  let printed = ''
  for (const output of [child.stdout, child.stderr]) {
    output.on('data', (chunk) => {
      printed += chunk
    })
  }
  const asked = () => rest(`http://localhost:${port}`, '/wallet/nonce', {}, caller)
  await expect
    .poll(async () => (child.exitCode === null ? (await asked().catch(() => undefined))?.status : printed))
    .toBe(200)
  child.kill('SIGTERM')
  await once(child, 'close')
  expect(printed).toContain("name: 'countersign.v1.SignInService/IssueNonce'")
  expect(printed).not.toMatch(/^ {2}traceId: 'a{32}'/m)
  expect(printed).toMatch(/links: \[\s+\{[^}]*traceId: 'a{32}'/)
})

test('the client passes its trace on', async () => {
  const { url } = await startService({ tracing: 'on' })
  const { stdout } = await runTypeScript(`${sdk}${client}`, url)
  expect(stdout).toContain('{ active: false }')
  await expect.poll(() => callSpans().length).toBe(1)
  const { traceId, spanId } = callSpans()[0]?.parentSpanContext ?? {}
  expect(stdout).toContain("name: 'check a session'")
  expect(stdout).toContain(`traceId: '${traceId}'`)
  expect(stdout).toContain(`id: '${spanId}'`)
})
