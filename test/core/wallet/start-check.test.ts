import { fileURLToPath, pathToFileURL } from 'node:url'
import { memoryAdapter } from 'better-auth/adapters/memory'
import { betterAuth } from 'better-auth/minimal'
import { describe, expect, test } from 'vitest'
import { crossDevice, walletSignIn } from '../../../src/better-auth/index.ts'
import { nimiq } from '../../../src/core/wallet/nimiq.ts'
import type { WalletAdapter } from '../../../src/index.ts'
import { createCountersign } from '../../../src/index.ts'
import { run } from '../../support/command.ts'
import { keptLog } from '../../support/log-lines.ts'

/** An adapter of one's own with a check. */
function ring(checkAtStart: WalletAdapter['checkAtStart']): WalletAdapter {
  // Without the parts that the check for wallets of the same bytes looks at.
  const { curve: _curve, envelope: _envelope, ...adapter } = nimiq
  return { ...adapter, id: 'ring', displayName: 'Ring', ...(checkAtStart === undefined ? {} : { checkAtStart }) }
}

/**
 * Starts a service, or Better Auth with a plugin, with an adapter beside a built-in one. Resolves with what was logged.
 */
type Start = (adapter: WalletAdapter) => Promise<readonly unknown[]>

const startService: Start = async (adapter) => {
  const { logger, lines } = keptLog()
  const service = await createCountersign({ adapters: ['nimiq', adapter], logger, store: 'sqlite::memory:' })
  await service.close(0)
  return lines.map(({ level, text, fields }) => [level, text, fields])
}

const startPlugin =
  (plugin: typeof walletSignIn | typeof crossDevice): Start =>
  async (adapter) => {
    const lines: unknown[] = []
    await betterAuth({
      baseURL: 'http://localhost:3000',
      secret: 'a secret for tests, not for anything else',
      database: memoryAdapter({}),
      logger: { level: 'warn', log: (level, text, ...fields) => lines.push([level, text, ...fields]) },
      plugins: [plugin({ adapters: ['nimiq', adapter] })],
    }).$context
    return lines
  }

describe.each<[what: string, start: Start]>([
  ['a service', startService],
  ['walletSignIn', startPlugin(walletSignIn)],
  ['crossDevice', startPlugin(crossDevice)],
])('the start of %s', (_, start) => {
  test('waits for the checks of its adapters, and says nothing if nothing is wrong', async () => {
    const steps: string[] = []
    const lines = await start(
      ring(async () => {
        steps.push('asked')
        await new Promise((resolve) => setTimeout(resolve, 50))
        steps.push('answered')
      }),
    )
    expect(steps).toEqual(['asked', 'answered'])
    expect(lines).toEqual([])
    expect(await start(ring(undefined))).toEqual([])
  })

  test('is stopped by a check that rejects or throws, with its own line', async () => {
    const wrong = new TypeError('ring: directory must be a URL, not "directory"')
    const rejecting = async () => {
      throw wrong
    }
    const throwing = () => {
      throw wrong
    }
    for (const check of [rejecting, throwing]) await expect(start(ring(check))).rejects.toBe(wrong)
  })

  test('passes on what a check warns of, under the name of the adapter', async () => {
    const lines = await start(
      ring(async (warn) => {
        warn('the directory does not answer', { cause: 'ECONNREFUSED' })
        warn('the directory is slow')
      }),
    )
    expect(lines).toEqual([
      ['warn', 'the directory does not answer', { adapter: 'ring', cause: 'ECONNREFUSED' }],
      ['warn', 'the directory is slow', { adapter: 'ring' }],
    ])
  })

  test('needs a check to be a function', async () => {
    const odd = { ...ring(undefined), checkAtStart: true } as unknown as WalletAdapter
    await expect((async () => await start(odd))()).rejects.toThrow(
      /^adapter "ring" has a checkAtStart that is not a function$/,
    )
  })
})

test('a check that never ends holds the start for ten seconds, and a start beside it not at all', async () => {
  const [main, plugins] = ['index.ts', 'better-auth/index.ts'].map((file) =>
    JSON.stringify(pathToFileURL(fileURLToPath(new URL(`../../../src/${file}`, import.meta.url)))),
  )
  // A process of its own, which ends by itself once nothing holds it.
  const { stdout, stderr } = await run(process.execPath, [
    '--input-type=module',
    '-e',
    `import { memoryAdapter } from 'better-auth/adapters/memory'
     import { betterAuth } from 'better-auth/minimal'
     import { createCountersign } from ${main}
     import { walletSignIn } from ${plugins}
     const hanging = { id: 'ring', displayName: 'Ring', verify() {}, readAddress() {}, checkAtStart: () => new Promise(() => {}) }
     const quick = { ...hanging, checkAtStart: async () => {} }
     const log = (start) => (level, text) => console.log(start, level, text)
     const service = async (adapter, start) => {
       const warn = (text) => log(start)('warn', text)
       const logger = { debug: warn, info: warn, warn, error: warn }
       await (await createCountersign({ adapters: [adapter], store: 'sqlite::memory:', logger })).close(0)
     }
     const began = performance.now()
     const timed = async (start, work) => {
       await work
       const seconds = (performance.now() - began) / 1000
       console.log(start, seconds < 8 ? 'at once' : seconds < 9.9 ? 'early' : 'late')
     }
     await Promise.all([
       timed('quick', service(quick, 'quick')),
       timed('service', service(hanging, 'service')),
       timed('plugin', betterAuth({
         baseURL: 'http://localhost:3000',
         secret: 'a secret for tests, not for anything else',
         database: memoryAdapter({}),
         logger: { level: 'warn', log: log('plugin') },
         plugins: [walletSignIn({ adapters: [hanging] })],
       }).$context),
     ])`,
  ])
  expect(stderr).toBe('')
  const warning = 'warn the check of adapter "ring" took longer than 10 seconds; the start goes on without it'
  expect(stdout.trimEnd().split('\n').sort()).toEqual([
    `plugin late`,
    `plugin ${warning}`,
    'quick at once',
    'service late',
    `service ${warning}`,
  ])
})
