import { spawn } from 'node:child_process'
import { rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect, onTestFinished, test } from 'vitest'
import { signIn } from '../support/flows.ts'
import { hasPart } from '../support/optional.ts'
import { RedisServer } from '../support/redis-server.ts'
import { bearer, rest } from '../support/rest.ts'
import { type ServiceProcess, spawnService, startService } from '../support/service.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'
import { makeWallet, proofOf } from '../support/wallet.ts'

const [older, newer] = ['the older secret of this test alone', 'the newer secret of this test alone']
const [oldKey, newKey] = ['old-start-key-of-this-test-alone-1234', 'new-start-key-of-this-test-alone-5678']
const tokenOf = async (url: string): Promise<string> => (await signIn(url)).token

async function isGood(url: string, token: string): Promise<boolean> {
  return (await rest(url, '/session', undefined, bearer(token))).status === 200
}

/** Sends SIGHUP, waits for the line that says what came of it, and returns it. */
async function hangUp(
  service: ServiceProcess,
): Promise<{ level: string; text: string; changed?: string; cause?: string }> {
  const lines = () => service.log().match(/^.*"text":"reload(ed|ing failed).*$/gm) ?? []
  const before = lines().length
  service.process.kill('SIGHUP')
  await expect.poll(() => lines().length).toBe(before + 1)
  return JSON.parse(lines().at(-1) ?? '')
}

describe('SIGHUP', () => {
  test('without files changes nothing and ends nothing', async () => {
    const service = await spawnService({ COUNTERSIGN_STORE: 'sqlite::memory:' })
    const token = await tokenOf(service.url)
    expect(await hangUp(service)).toMatchObject({ level: 'info', changed: 'nothing' })
    expect(await isGood(service.url, token)).toBe(true)
    expect(await service.stop()).toBe(0)
  })

  test('takes another people file, and keeps the one before if it is broken', async () => {
    const people = join(temporaryFolder(), 'people.json')
    const wallet = makeWallet()
    await writeFile(people, JSON.stringify({ [`nimiq:${wallet.address}`]: {} }))
    const service = await spawnService({
      COUNTERSIGN_STORE: 'sqlite::memory:',
      COUNTERSIGN_PEOPLE: people,
      COUNTERSIGN_ADMIT: 'people',
    })
    const statusOf = async (one = wallet): Promise<number> => {
      const { json } = await rest(service.url, '/wallet/nonce', {})
      return (await rest(service.url, '/wallet/verify', proofOf(one, json))).status
    }
    for (const broken of ['{', '{}', '{"nimiq:NQ07": {}}']) {
      await writeFile(people, broken)
      expect(await hangUp(service)).toMatchObject({
        level: 'error',
        text: 'reloading failed: everything stays as it was',
        cause: expect.stringMatching(/^people \(COUNTERSIGN_PEOPLE\), the file /),
      })
      expect([await statusOf(), await statusOf(makeWallet())]).toEqual([200, 403])
    }
    const other = makeWallet()
    await writeFile(people, JSON.stringify({ [`nimiq:${other.address}`]: {} }))
    expect(await hangUp(service)).toMatchObject({ level: 'info', changed: 'people' })
    expect([await statusOf(), await statusOf(other)]).toEqual([403, 200])
  })

  test('takes new secrets from their files, step by step, and no session check fails', async () => {
    const folder = temporaryFolder()
    const [secretFile, keysFile] = [join(folder, 'secret'), join(folder, 'keys')]
    await writeFile(secretFile, `${older}\n`)
    await writeFile(keysFile, oldKey)
    const service = await spawnService({
      COUNTERSIGN_STORE: 'sqlite::memory:',
      COUNTERSIGN_SECRET_FILE: secretFile,
      COUNTERSIGN_ORDER_START_KEYS_FILE: keysFile,
      COUNTERSIGN_ACCESS_TOKEN_AUDIENCES: 'api',
    })
    const { url } = service
    const tokens = [await tokenOf(url)]
    let isOver = false
    const failures: number[] = []
    const checks = (async () => {
      for (let n = 0; !isOver; n++) {
        const token = tokens[n % tokens.length] as string
        const { status } = await rest(url, '/session', undefined, bearer(token))
        if (status !== 200) failures.push(status)
      }
    })()
    const keyIds = async (): Promise<string[]> => {
      const { keys } = await (await fetch(`${url}/.well-known/jwks.json`)).json()
      return keys.filter(({ alg }: { alg: string }) => alg === 'ES256').map(({ kid }: { kid: string }) => kid)
    }
    const signedWith = async (token: string): Promise<string> => {
      const { json } = await rest(url, '/access-token', { audience: 'api' }, bearer(token))
      return JSON.parse(Buffer.from(json.accessToken.split('.')[0], 'base64url').toString()).kid
    }
    const startWith = async (key: string): Promise<number> => {
      const requester = { origin: url, ip: '192.0.2.1' }
      return (await rest(url, '/cross-device/start', { kind: 'login', requester }, bearer(key))).status
    }
    const [first] = await keyIds()
    expect(await signedWith(tokens[0] as string)).toBe(first)
    expect([await startWith(oldKey), await startWith(newKey)]).toEqual([200, 401])

    await writeFile(secretFile, `${older}\n${newer}\n`)
    await writeFile(keysFile, `${oldKey}\n${newKey}\n`)
    expect(await hangUp(service)).toMatchObject({ level: 'info', changed: 'secret, orderStartKeys' })
    const second = (await keyIds())[1]
    tokens.push(await tokenOf(url))
    expect([await startWith(oldKey), await startWith(newKey)]).toEqual([200, 200])

    await writeFile(secretFile, `${newer},${older}`)
    await writeFile(keysFile, newKey)
    expect(await hangUp(service)).toMatchObject({ changed: 'secret, orderStartKeys' })
    expect(await keyIds()).toEqual([second, first])
    tokens.push(await tokenOf(url))
    expect(await signedWith(tokens[0] as string)).toBe(second)
    expect([await startWith(oldKey), await startWith(newKey)]).toEqual([401, 200])

    await writeFile(secretFile, 'tooshort')
    expect(await hangUp(service)).toMatchObject({
      level: 'error',
      cause: expect.stringMatching(/^secret \(COUNTERSIGN_SECRET\) must be text of 32 characters or more/),
    })
    await rm(secretFile)
    expect((await hangUp(service)).cause).toBe(
      `COUNTERSIGN_SECRET_FILE must name a file that can be read; ${secretFile} cannot be: ENOENT`,
    )
    expect(await keyIds()).toEqual([second, first])
    isOver = true
    await checks
    expect(failures).toEqual([])

    await writeFile(secretFile, newer)
    expect(await hangUp(service)).toMatchObject({ changed: 'secret' })
    expect(await Promise.all(tokens.map((token) => isGood(url, token)))).toEqual([false, false, true])
    expect(service.log()).not.toMatch(/of this test alone|start-key|tooshort/)
    expect(await service.stop()).toBe(0)
  })

  test('says that a restart is needed for what it cannot replace', async () => {
    const file = join(temporaryFolder(), 'store')
    await writeFile(file, 'sqlite::memory:')
    const service = await spawnService({ COUNTERSIGN_STORE_FILE: file })
    await writeFile(file, 'redis://:password-of-this-test@127.0.0.1')
    expect(await hangUp(service)).toMatchObject({ changed: 'nothing' })
    await expect.poll(() => service.log()).toContain('the file of store has changed; restart the service')
    expect(service.log()).not.toContain('password-of-this-test')
  })

  test.skipIf(!hasPart('script'))('ends a service whose terminal is closed', async () => {
    const main = fileURLToPath(new URL('../../src/main.ts', import.meta.url))
    const command = `echo "process $$"; exec '${process.execPath}' '${main}'`
    const env = { PATH: process.env.PATH, PORT: '0', COUNTERSIGN_STORE: 'sqlite::memory:', SHELL: '/bin/sh' }
    const terminal = spawn('script', ['-q', '-c', command, '/dev/null'], { env, stdio: ['pipe', 'pipe', 'ignore'] })
    let shown = ''
    terminal.stdout.on('data', (chunk) => (shown += chunk))
    await expect.poll(() => shown).toContain('is ready')
    const pid = Number(/process (\d+)/.exec(shown)?.[1])
    expect(isThere(pid)).toBe(true)
    onTestFinished(() => void isThere(pid, 'SIGKILL'))
    terminal.kill('SIGKILL')
    await expect.poll(() => isThere(pid)).toBe(false)
  })
})

/** Whether there is such a process, to which a signal is sent. */
function isThere(pid: number, signal: NodeJS.Signals | 0 = 0): boolean {
  try {
    return process.kill(pid, signal)
  } catch {
    return false
  }
}

describe('reload in code', () => {
  test('takes other secrets at once, and refuses what does not fit with everything as it was', async () => {
    const { url, service } = await startService({ secret: older })
    const token = await tokenOf(url)
    await expect(service.reload({ secret: 'short' })).rejects.toThrow(/^secret \(COUNTERSIGN_SECRET\) must be text/)
    await expect(service.reload({ orderStartKeys: [oldKey] })).rejects.toThrow(/was not set at the start/)
    await expect(service.reload({ port: 1 } as never)).rejects.toThrow(
      'port cannot be replaced while the service runs; restart it',
    )
    expect([await service.reload(), await service.reload({ secret: older })]).toEqual([[], []])
    expect(await isGood(url, token)).toBe(true)
    expect(await service.reload({ secret: [newer] })).toEqual(['secret'])
    expect(await isGood(url, token)).toBe(false)
  })
})

describe('nothing secret is told', () => {
  const password = 'password-of-this-test'

  test.skipIf(!hasPart('redis-server'))('of a store address in a file, whatever is wrong with it', async () => {
    await using server = await RedisServer.start('--requirepass', 'another')
    const folder = temporaryFolder()
    const { port } = new URL(server.url)
    const addresses = [
      `redis://:${password}@127.0.0.1:${port}`,
      `redis://user:${password}@127.0.0.1:${port}`,
      `rediss://:${password}@127.0.0.1:${port}`,
      `redis://:${password}@127.0.0.1:1`,
      `redis+cluster://:${password}@127.0.0.1:${port}`,
      `redis+sentinel://:${password}@127.0.0.1:${port}/main`,
      `redis:// :${password}@127.0.0.1`,
      `redis://:${password}@127.0.0.1:${port}\n:${password}@other`,
      `mysql://:${password}@127.0.0.1`,
    ]
    const tries = addresses.map(async (address, index) => {
      const file = join(folder, `store-${index}`)
      await writeFile(file, address)
      const start = spawnService({ COUNTERSIGN_STORE_FILE: file, COUNTERSIGN_SECRET: older, LOG_LEVEL: 'debug' })
      return await start.then(
        () => 'started',
        ({ message }: Error) => message,
      )
    })
    for (const told of await Promise.all(tries)) {
      expect(told).toMatch(/^countersign: [^\n]+\n$/)
      expect(told).not.toContain(password)
      expect(told).not.toContain(older)
    }
  })

  test.skipIf(!hasPart('redis-server'))('in the arguments, environment and log of a service that runs', async () => {
    await using server = await RedisServer.start('--requirepass', password)
    const folder = temporaryFolder()
    const [storeFile, secretFile] = [join(folder, 'store'), join(folder, 'secret')]
    await writeFile(storeFile, server.url.replace('//', `//:${password}@`))
    await writeFile(secretFile, older)
    const service = await spawnService({
      COUNTERSIGN_STORE_FILE: storeFile,
      COUNTERSIGN_SECRET_FILE: secretFile,
      LOG_LEVEL: 'debug',
    })
    const token = await tokenOf(service.url)
    await rest(service.url, '/session', undefined, bearer(`${token}x`))
    await hangUp(service)
    await server.kill()
    expect((await rest(service.url, '/session', undefined, bearer(token))).status).toBe(503)
    const { pid } = service.process
    const ps = spawn('ps', ['eww', '-p', `${pid}`])
    let shown = ''
    for await (const chunk of ps.stdout) shown += chunk
    expect(shown).toContain('COUNTERSIGN_SECRET_FILE')
    for (const secret of [password, older, token]) expect(shown + service.log()).not.toContain(secret)
    expect(await service.stop()).toBe(0)
  })
})

test('the log is JSON or for people as COUNTERSIGN_LOG_FORMAT says', async () => {
  const store = { COUNTERSIGN_STORE: 'sqlite::memory:', COUNTERSIGN_STOER: 'x' }
  const json = await spawnService({ ...store, COUNTERSIGN_LOG_FORMAT: 'json' })
  expect(json.log()).toMatch(/^\{"time":"[^"]+","level":"warn","text":"Unknown setting COUNTERSIGN_STOER/)
  const told = await spawnService({ ...store, COUNTERSIGN_LOG_FORMAT: 'pretty', HOST: 'nowhere.invalid' }).catch(String)
  expect(told).toMatch(/^Error: \d\d:\d\d:\d\d warn {2}Unknown setting COUNTERSIGN_STOER/)
  const wrong = spawnService({ ...store, COUNTERSIGN_LOG_FORMAT: 'xml' })
  await expect(wrong).rejects.toThrow('logFormat (COUNTERSIGN_LOG_FORMAT) must be auto, json or pretty, not "xml"')
})
