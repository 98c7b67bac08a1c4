import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { expect, test } from 'vitest'
import { modulesOf } from '../../support/loaded-modules.ts'
import { keptLog } from '../../support/log-lines.ts'
import { rest } from '../../support/rest.ts'
import { spawnService, startService } from '../../support/service.ts'
import { workFolder } from '../../support/snippets.ts'

const index = fileURLToPath(new URL('../../../src/index.ts', import.meta.url))

test.each([
  ['is not loaded unless tracing is on', '', false],
  ['is loaded if it is', "tracing: 'on'", true],
])('OpenTelemetry %s', async (_, option, loaded) => {
  const file = join(await workFolder(), 'main.ts')
  await writeFile(
    file,
    `import { createCountersign } from '${index}'
    const service = await createCountersign({ store: 'sqlite::memory:', ${option} })
    await service.close(0)`,
  )
  const modules = await modulesOf(pathToFileURL(file))
  expect(modules.some((url) => url.includes('/@connectrpc/connect/'))).toBe(true)
  expect(modules.some((url) => url.includes('/@opentelemetry/'))).toBe(loaded)
})

test('without an SDK, the log says that there are no traces, and calls are served', async () => {
  const { logger, lines } = keptLog()
  const { url } = await startService({ tracing: 'on', logger })
  expect((await rest(url, '/wallet/nonce', {})).status).toBe(200)
  const warnings = lines.filter(({ level }) => level === 'warn').map(({ text }) => text)
  expect(warnings).toEqual([expect.stringMatching(/^tracing \(COUNTERSIGN_TRACING\) is on, but no OpenTelemetry SDK/)])
})

test('without the package, the service does not start, and says what to install', async () => {
  const hooks = `
    import { registerHooks } from 'node:module'
    registerHooks({
      resolve(name, context, next) {
        if (name.startsWith('@opentelemetry/')) throw new Error('not installed')
        return next(name, context)
      },
    })`
  const start = spawnService({
    COUNTERSIGN_TRACING: 'on',
    COUNTERSIGN_STORE: 'sqlite::memory:',
    NODE_OPTIONS: `--import data:text/javascript,${encodeURIComponent(hooks).replaceAll("'", '%27')}`,
  })
  await expect(start).rejects.toThrow(
    'tracing (COUNTERSIGN_TRACING) needs the package @opentelemetry/api, which is not installed: npm install @opentelemetry/api',
  )
})
