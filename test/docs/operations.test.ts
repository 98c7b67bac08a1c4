import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect, test } from 'vitest'
import { defaultLimits } from '../../src/limits/limits.ts'
import { optionsFromEnvironment, resolveSettings, unknownVariables } from '../../src/service/config.ts'
import { run } from '../support/command.ts'
import { hasPart } from '../support/optional.ts'
import { freePort } from '../support/redis-server.ts'
import { readFromRoot } from '../support/repository.ts'
import { spawnService } from '../support/service.ts'
import { redisUrl } from '../support/stores.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'

const page = await readFromRoot('docs/operations.md')
const unitFile = new URL('../../deploy/systemd/countersign.service', import.meta.url)
const unit = await readFile(unitFile, 'utf8')
const scaling = await readFromRoot('docs/scaling.md')
const [, edit = ''] = /^sed '(.+)' \\$/m.exec(scaling) ?? []
const template = (await run('sed', [edit, fileURLToPath(unitFile)])).stdout

function environmentOf(text: string): Record<string, string> {
  return Object.fromEntries(
    [...text.matchAll(/^Environment=(\w+)=(.*)$/gm)].map(([, name = '', value = '']) => [name, value]),
  )
}

describe.each([
  ['countersign.service', unit],
  ['countersign@8080.service', template],
])('the systemd unit %s', (name, text) => {
  test.skipIf(!hasPart('systemd-analyze'))(
    'is one to systemd, and leaves the service little to do harm with',
    async () => {
      const file = join(temporaryFolder(), name)
      // The paths of the service are not those of this machine.
      await writeFile(file, text.replace('/usr/bin/node', process.execPath))
      const { stdout, stderr } = await run('systemd-analyze', ['verify', '--man=no', file])
      expect(stdout + stderr).toBe('')
      // Of 10, in tenths. Without a line of the hardening it is above 90.
      await run('systemd-analyze', ['security', '--offline=yes', '--threshold=20', '--no-pager', file])
    },
  )

  test('has settings that there are', () => expect(unknownVariables(environmentOf(text))).toEqual([]))
})

describe('the systemd unit for SQLite', () => {
  test('has settings with which a service starts and stops in time', async () => {
    const folder = temporaryFolder()
    await writeFile(join(folder, 'secret'), 'the secret of this test and of nothing else\n')
    const given = Object.entries(environmentOf(unit)).map(([name, value]) => [
      name,
      value.replace('%d', folder).replace('/var/lib/countersign', folder),
    ])
    const service = await spawnService(Object.fromEntries(given))
    expect(service.log()).toContain(join(folder, 'countersign.db'))
    const drain = 2
    expect(Number(/^TimeoutStopSec=(\d+)$/m.exec(unit)?.[1])).toBeGreaterThan(drain + 10)
    expect(await service.stop()).toBe(0)
  })
})

test.skipIf(redisUrl === undefined)(
  'the template of docs/scaling.md starts an instance for each name, which says when it is ready',
  async () => {
    const folder = temporaryFolder()
    await writeFile(join(folder, 'secret'), 'the secret of this test and of nothing else\n')
    const COUNTERSIGN_STORE = (await redisUrl?.()) ?? ''
    for (const port of [await freePort(), await freePort()]) {
      const metricsPort = await freePort()
      const given = Object.entries(environmentOf(template)).map(([name, value]) => [
        name,
        // The port of an instance with a one before it can be over 65,535 here.
        value.replace('%d', folder).replace('1%i', String(metricsPort)).replace('%i', String(port)),
      ])
      await spawnService({ ...Object.fromEntries(given), COUNTERSIGN_STORE })
      expect((await fetch(`http://127.0.0.1:${port}/readyz`)).status).toBe(200)
      expect(await (await fetch(`http://127.0.0.1:${metricsPort}/metrics`)).text()).toMatch(/^countersign_ready 1$/m)
    }
  },
)

test('the table of limits has each limit with its number, and no other', () => {
  const rows = [...page.matchAll(/^\| `([a-z-]+)` \|.* \| each [^|]+ \| (\d+) \|$/gm)]
  expect(Object.fromEntries(rows.map(([, name, number]) => [name, Number(number)]))).toEqual(defaultLimits)
})

test('the numbers on the page can be set', () => {
  const [, text = ''] = /`COUNTERSIGN_RATE_LIMITS=(\S+)`/.exec(page) ?? []
  const { limits } = resolveSettings(optionsFromEnvironment({ COUNTERSIGN_RATE_LIMITS: text }))
  expect(limits.rates).toEqual({ ...defaultLimits, 'sign-in': 480, watchers: 5000 })
})
