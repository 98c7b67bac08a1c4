import { readFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import { expect, onTestFinished, test } from 'vitest'
import { type CountersignOptions, optionsFromEnvironment } from '../../src/service/config.ts'
import { createService } from '../../src/service/countersign.ts'
import { optionsOnLan } from '../../src/service/lan.ts'
import { keptLog } from '../support/log-lines.ts'
import { mountService } from '../support/mounted.ts'
import { rest } from '../support/rest.ts'
import { spawnService, startService } from '../support/service.ts'

const publicUrl = 'https://auth.example'

/** How a new login order of the service's own page uses its code. */
async function codeAt(url: string, origin = publicUrl): Promise<'compare' | 'return'> {
  const { status, json } = await rest(url, '/cross-device/start', { kind: 'login' }, { origin })
  expect(status).toBe(200)
  return json.confirmationCode === '' ? 'return' : 'compare'
}

/** A service in this process, with what its start said of the setting. */
async function started(options: CountersignOptions) {
  const { logger, lines } = keptLog()
  const { url } = await startService({ logger, ...options })
  return { url, said: lines.map(({ text }) => text).filter((text) => text.includes('confirmationCode')) }
}

const isDefault =
  /^confirmationCode \(COUNTERSIGN_CONFIRMATION_CODE\) is return, the default at https:\/\/auth\.example/

test('on a public address, orders need return codes by default, and the start says so in one line', async () => {
  const { url, said } = await started({ publicUrl })
  expect(said).toEqual([expect.stringMatching(isDefault)])
  expect(await codeAt(url)).toBe('return')
})

test('the command says the same in its log', async () => {
  const service = await spawnService({ COUNTERSIGN_STORE: 'sqlite::memory:', COUNTERSIGN_PUBLIC_URL: publicUrl })
  const said = service
    .log()
    .split('\n')
    .filter((line) => line.includes('confirmationCode'))
  expect(said).toHaveLength(1)
  expect(JSON.parse(said[0] ?? '')).toMatchObject({ level: 'warn', text: expect.stringMatching(isDefault) })
  expect(await codeAt(service.url)).toBe('return')
})

test('a mounted service does the same', async () => {
  const { logger, lines } = keptLog()
  const { url } = await mountService(
    (service) => createServer((request, response) => service().handler(request, response)),
    { publicUrl, logger },
  )
  expect(lines.map(({ text }) => text)).toEqual([expect.stringMatching(isDefault)])
  expect(await codeAt(url)).toBe('return')
})

test("Kubernetes' and Compose's files name return; without the setting, it is the default there", async () => {
  for (const [file, setting] of [
    ['kubernetes/countersign.yaml', /^ {2}(COUNTERSIGN_[A-Z_]+): "?([^"\n]+)"?$/gm],
    ['compose/compose.yaml', /^ {6}(COUNTERSIGN_[A-Z_]+): "?([^"\n]+)"?$/gm],
  ] as const) {
    const text = await readFile(new URL(`../../deploy/${file}`, import.meta.url), 'utf8')
    const all: Record<string, string> = Object.fromEntries(
      [...text.matchAll(setting)].map(([, name, value]) => [name, value]),
    )
    const { COUNTERSIGN_STORE_FILE, COUNTERSIGN_SECRET_FILE, ...named } = all
    const { COUNTERSIGN_CONFIRMATION_CODE, ...without } = named
    expect(COUNTERSIGN_CONFIRMATION_CODE).toBe('return')
    const asNamed = await started(optionsFromEnvironment(named))
    expect(asNamed.said).toEqual([])
    expect(await codeAt(asNamed.url)).toBe('return')
    const asDefault = await started(optionsFromEnvironment(without))
    expect(asDefault.said).toEqual([expect.stringMatching(isDefault)])
    expect(await codeAt(asDefault.url)).toBe('return')
  }
})

test("systemd's unit names return", async () => {
  const text = await readFile(new URL('../../deploy/systemd/countersign.service', import.meta.url), 'utf8')
  expect(text).toMatch(/^Environment=COUNTERSIGN_CONFIRMATION_CODE=return$/m)
})

test('compare that is set on a public address stays, and the start warns of it once', async () => {
  const { url, said } = await started({ publicUrl, confirmationCode: 'compare' })
  expect(said).toEqual([expect.stringMatching(/is compare, which stops no relayed order, at https:\/\/auth\.example;/)])
  expect(await codeAt(url)).toBe('compare')
})

test.each(['http://localhost:4000', 'http://127.0.0.1:4000', 'https://[::1]:4000'])(
  'at the loopback name of %s, the code is compared by default, and nothing is said',
  async (local) => {
    const { url, said } = await started({ publicUrl: local })
    expect(said).toEqual([])
    expect(await codeAt(url, local)).toBe('compare')
  },
)

test('a name that only begins like a loopback name is a public one', async () => {
  for (const near of ['https://localhost.example', 'http://127.0.0.1.example']) {
    const { url, said } = await started({ publicUrl: near })
    expect(said).toHaveLength(1)
    expect(await codeAt(url, near)).toBe('return')
  }
})

test.each([undefined, publicUrl])('with --lan and publicUrl %s, the code is compared by default', async (given) => {
  const { logger, lines } = keptLog()
  const options = optionsOnLan({
    ...{ store: 'sqlite::memory:', port: 0, rateLimit: false, logger },
    ...(given === undefined ? {} : { publicUrl: given }),
  })
  const service = await createService({ ...options, host: '127.0.0.1' }, { host: '192.0.2.7' })
  onTestFinished(() => service.close(0))
  const port = await service.listen()
  expect(lines).toEqual([])
  expect(await codeAt(`http://127.0.0.1:${port}`, service.publicUrl)).toBe('compare')
})
