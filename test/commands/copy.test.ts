import { globSync, readFileSync, writeFileSync } from 'node:fs'
import { expect, onTestFinished, test, vi } from 'vitest'
import { runCommand } from '../../src/commands/command.ts'
import { keysNotToRevive, storedKinds } from '../../src/commands/stored-kinds.ts'
import { CountersignError } from '../../src/shared/errors.ts'
import { runHere, runHereIn } from '../support/command.ts'
import { hasPart } from '../support/optional.ts'
import { root } from '../support/repository.ts'
import { bearer, rest } from '../support/rest.ts'
import { startService } from '../support/service.ts'
import { dumpStore } from '../support/store-dump.ts'
import { makeWallet } from '../support/wallet.ts'
import { signIn } from './calls.ts'
import { copyAtOnce, newFile, openBare, rehearse } from './copying.ts'

const secret = 'a secret of the tests and of nothing else'

/** A store with so many users, and the token of one. */
async function filled(users = 3) {
  const store = `sqlite:${newFile()}`
  const { url, service } = await startService({ store, secret })
  const tokens = []
  for (let user = 0; user < users; user++) tokens.push((await signIn(url, makeWallet())).token as string)
  return { store, url, service, token: tokens[0] as string }
}

const empty = () => `sqlite:${newFile()}`

test.skipIf(!hasPart('redis-server') || !hasPart('postgresql'))(
  'copies from SQLite, Redis and PostgreSQL to each other keep what lasts, and nothing of what had begun',
  { timeout: 120_000 },
  async () => {
    await rehearse(5, (_url, from, to, secretFile) => copyAtOnce(from, to, { secretFile }))
  },
)

test('a running service takes no calls half a minute after the mark, and takes them again after --undo', async () => {
  const { store, url, token } = await filled()
  const counts = await copyAtOnce(store, empty())
  expect(counts).toMatchObject({ user: { from: 3, to: 3 }, session: { from: 3, to: 3 }, wallet: { from: 3, to: 3 } })
  const now = vi.spyOn(performance, 'now')
  onTestFinished(() => now.mockRestore())
  const at = performance.now()
  now.mockReturnValue(at + 31_000)
  expect(await rest(url, '/session', undefined, bearer(token))).toMatchObject({
    status: 503,
    json: { code: 'STORE_UNAVAILABLE' },
  })
  expect((await fetch(`${url}/readyz`)).status).toBe(503)
  const undone = await runHere(runCommand, ['admin', 'copy', '--undo', '--from', store])
  expect([undone.code, undone.stderr]).toEqual([0, ''])
  now.mockReturnValue(at + 62_000)
  expect((await rest(url, '/session', undefined, bearer(token))).status).toBe(200)
  await startService({ store, secret })
})

test('a copy that breaks off lets no service start on either store, and is begun anew with --again only', async () => {
  const { store, service } = await filled(20)
  await service.close(0)
  const to = empty()
  const target = await openBare(to)
  let writes = 0
  const create: typeof target.create = async (...entry) => {
    // The mark is the first, and a part of the values comes through.
    if (++writes > 30) throw new Error('the network is gone')
    return await target.create(...entry)
  }
  await expect(copyAtOnce(store, to, { to: { ...bound(target), create } })).rejects.toThrow('the network is gone')
  await expect(startService({ store, secret })).rejects.toThrow(/was copied to another store/)
  await expect(startService({ store: to, secret })).rejects.toThrow(/is an unfinished copy .* --again/)
  const undone = await runHere(runCommand, ['admin', 'copy', '--undo', '--from', to])
  expect(undone).toMatchObject({ code: 1, stderr: expect.stringContaining('is an unfinished copy') })
  await expect(copyAtOnce(store, to)).rejects.toThrow(/has the mark of a copy before. Add --again [^-]*$/)
  await expect(copyAtOnce(to, empty())).rejects.toThrow(/is itself an unfinished copy/)
  expect((await copyAtOnce(store, to, { again: true })).session).toEqual({ from: 20, to: 20 })
  await startService({ store: to, secret })
})

test('of two copies to one store, the one that began first releases nothing', async () => {
  const { store, service } = await filled(20)
  await service.close(0)
  const to = empty()
  const target = await openBare(to)
  let second: Promise<unknown> | undefined
  const create: typeof target.create = async (key, ...entry) => {
    if (key !== 'copy-mark' && second === undefined) {
      await new Promise<void>((marked) => {
        second = copyAtOnce(store, to, { again: true, waitMs: 500, say: () => marked() })
      })
    }
    return await target.create(key, ...entry)
  }
  await expect(copyAtOnce(store, to, { to: { ...bound(target), create } })).rejects.toThrow(/another copy/)
  expect(await second).toMatchObject({ session: { from: 20, to: 20 } })
  await startService({ store: to, secret })
})

test('a mark is set although another step changes it in between', async () => {
  const { store } = await filled(1)
  const to = empty()
  const target = await openBare(to)
  let tries = 0
  const compareAndSet: typeof target.compareAndSet = async (...change) =>
    ++tries > 1 && (await target.compareAndSet(...change))
  await copyAtOnce(store, to, { to: { ...bound(target), compareAndSet }, secrets: [secret] })
  await startService({ store: to, secret })
})

test('a process that slept looks for the mark before its next step', async () => {
  const { store, url, token } = await filled(1)
  await copyAtOnce(store, empty())
  // The clock that only goes forward stands still while a machine sleeps.
  const woken = Date.now() + 31_000
  const now = vi.spyOn(Date, 'now').mockImplementation(() => woken)
  onTestFinished(() => now.mockRestore())
  expect((await rest(url, '/session', undefined, bearer(token))).status).toBe(503)
})

test('a copy that no service has started on is not copied on: its secret would go unchecked', async () => {
  const { store } = await filled(1)
  const to = empty()
  await copyAtOnce(store, to, { secrets: [secret] })
  await expect(copyAtOnce(to, empty())).rejects.toThrow(/is a copy that no service has started on/)
  await startService({ store: to, secret })
  await copyAtOnce(to, empty())
})

/** A store whose methods can be spread. */
function bound<S extends object>(store: S): S {
  const names = ['get', 'create', 'take', 'compareAndSet', 'addMember', 'scan', 'now'] as (keyof S)[]
  return Object.assign(
    Object.create(store),
    Object.fromEntries(names.map((name) => [name, (store[name] as () => void).bind(store)])),
  )
}

test('a store that is not empty is not copied to, and no mark is left', async () => {
  const [old, other] = [await filled(1), await filled(1)]
  for (const again of [false, true]) {
    await expect(copyAtOnce(old.store, other.store, { again })).rejects.toThrow(
      /is not empty: it has a value of the kind/,
    )
  }
  await startService({ store: old.store, secret })
  await startService({ store: other.store, secret })
})

test('a store that a service fills in the minute of the mark is not copied to', async () => {
  const { store } = await filled(1)
  const to = empty()
  const { url } = await startService({ store: to, secret })
  const say = (): void => void signIn(url, makeWallet())
  await expect(copyAtOnce(store, to, { say, waitMs: 500 })).rejects.toThrow(/is not empty/)
  // Nor is it emptied at the next try.
  await expect(copyAtOnce(store, to, { again: true })).rejects.toThrow(/is not empty/)
  await startService({ store, secret })
})

test('what is written to the old store meanwhile is an error', async () => {
  const { store, url } = await filled(1)
  const from = await openBare(store)
  let scans = 0
  const scan: typeof from.scan = async function* (beginning) {
    if (++scans === 2) await signIn(url, makeWallet())
    yield* from.scan(beginning)
  }
  await expect(copyAtOnce(store, empty(), { from: { ...bound(from), scan } })).rejects.toThrow(
    /the counts of both stores differ \(session: 2 and 1, of 1;/,
  )
})

test('another value that is written to the new store under the key of one that is copied is an error', async () => {
  const { store } = await filled(1)
  const target = await openBare(empty())
  const create: typeof target.create = async (key, value, life) => {
    if (key.startsWith('user:')) await target.create(key, `${value} `, life)
    return await target.create(key, value, life)
  }
  await expect(copyAtOnce(store, empty(), { to: { ...bound(target), create } })).rejects.toThrow(
    /something else wrote a value of the kind user to /,
  )
})

test('a kind of values that this release does not know is not left behind', async () => {
  const { store } = await filled(1)
  await (await openBare(store)).create('novelty:1', '', 'forever')
  await expect(copyAtOnce(store, empty())).rejects.toThrow(/a value of the kind novelty, which this release does not/)
})

test('a new store needs the secret of the old one at its first start', async () => {
  const { store, token } = await filled()
  const to = empty()
  await copyAtOnce(store, to, { secrets: [secret] })
  const other = 'another secret, of the tests and of nothing else'
  await expect(startService({ store: to, secret: other })).rejects.toThrow(
    /COUNTERSIGN_SECRET\) is not that of the store/,
  )
  const { url } = await startService({ store: to, secret: [other, secret] })
  expect((await rest(url, '/session', undefined, bearer(token))).status).toBe(200)
  // From then on, the operator changes it as ever.
  await startService({ store: to, secret: other })
})

test('the secret of an embedded store goes into a file of its owner, and no other secret is taken for it', async () => {
  const store = `sqlite:${newFile()}`
  const { url, service } = await startService({ store })
  const { token } = await signIn(url, makeWallet())
  await service.close(0)
  const kept = (await (await openBare(store)).get('secret'))?.value ?? ''
  const to = empty()
  await expect(copyAtOnce(store, to)).rejects.toThrow(/the new store keeps none: add --secret-file FILE/)
  await expect(copyAtOnce(store, to, { secrets: [secret] })).rejects.toThrow(
    /COUNTERSIGN_SECRET is not the secret that/,
  )
  const secretFile = newFile('secret')
  writeFileSync(secretFile, 'something of mine')
  await expect(copyAtOnce(store, to, { secretFile })).rejects.toThrow(/already exists, with something else in it/)
  const said: string[] = []
  const free = newFile('secret')
  await copyAtOnce(store, to, { secretFile: free, say: (line) => said.push(line) })
  expect(said.join('')).not.toContain(kept)
  expect(readFileSync(free, 'utf8')).toBe(`${kept}\n`)
  await expect(startService({ store: to, secret })).rejects.toThrow(/COUNTERSIGN_SECRET/)
  const moved = await startService({ store: to, secret: kept })
  expect((await rest(moved.url, '/session', undefined, bearer(token))).status).toBe(200)
})

test('doctor and the other commands say that a store was copied', async () => {
  const { store } = await filled()
  await copyAtOnce(store, empty())
  const count = await runHere(runCommand, ['admin', 'count', '--store', store])
  expect(count).toMatchObject({ code: 1, stderr: expect.stringContaining('was copied to another store (sqlite)') })
})

test('a mark that an operator takes away is an audit event for the services that start again', async () => {
  const { store } = await filled(1)
  await copyAtOnce(store, empty())
  const env = { COUNTERSIGN_WEBHOOK_URL: 'https://hooks.example/' }
  await runHereIn(env, runCommand, ['admin', 'copy', '--undo', '--from', store])
  const events = (await dumpStore(store)).filter(({ key }) => key.startsWith('webhook:'))
  expect(events.map(({ text }) => text)).toEqual([expect.stringMatching(/operator\.acted.*"copy/)])
})

test('a step that the new store does not answer in time is done again', async () => {
  const { store } = await filled(3)
  const to = empty()
  const target = await openBare(to)
  let answers = 0
  const create: typeof target.create = async (...entry) => {
    const isCreated = await target.create(...entry)
    if (++answers === 3) throw new CountersignError('STORE_UNAVAILABLE', 'the answer is lost')
    return isCreated
  }
  const counts = await copyAtOnce(store, to, { to: { ...bound(target), create }, secrets: [secret] })
  expect(counts.session).toEqual({ from: 3, to: 3 })
  await startService({ store: to, secret })
})

test('copy needs two stores, and refuses options and files that do not fit', async () => {
  const { store } = await filled()
  const run = (...args: string[]) => runHereIn({}, runCommand, ['admin', 'copy', ...args])
  const lone = await run('--from', store)
  expect(lone).toMatchObject({ code: 2, stderr: expect.stringContaining('copy needs --to') })
  const undo = await run('--undo', '--from', store, '--again')
  expect(undo).toMatchObject({ code: 2, stderr: expect.stringContaining('--undo takes --from only') })
  const missing = await run('--from', `sqlite:${newFile()}`, '--to', empty())
  expect(missing).toMatchObject({ code: 1, stderr: expect.stringContaining('there is no store file') })
  const address = newFile('address')
  writeFileSync(address, `${store}\n`)
  const read = await run('--undo', '--from', `@${address}`)
  expect(read).toMatchObject({ code: 1, stderr: expect.stringContaining('has no mark of a copy') })
  expect((await run('--undo', '--from', '@nowhere')).stderr).toContain('nowhere cannot be read: ENOENT')
})

test('each kind of keys in src says whether it is copied', () => {
  const files = globSync('src/{core,oidc,limits,observe,service,commands,store}/**/*.ts', { cwd: root })
  const texts = files.map((file) => readFileSync(`${root}/${file}`, 'utf8')).join('\n')
  const found = [
    // `kind:${…}` and 'kind:'; queues; records of the issuer.
    ...texts.matchAll(/[`']([a-z-]+):(?:\{?\$\{|')/g),
    ...texts.matchAll(/(?:Queue<\w+>\(|super\()store, '([a-z-]+)'/g),
  ].map(([, kind]) => kind as string)
  const ofIssuer = [...texts.matchAll(/\b\w*[kK]ind = '([\w-]+)'/g)].map(([, kind]) => `oidc:${kind}`)
  const sets = ['open-orders', 'sessions']
  const others = ['http', 'https', 'sqlite', 'solana', 'oidc', 'oidc:sqlite', 'oidc:redis', 'oidc:postgresql']
  const unknown = [...new Set([...found, ...ofIssuer])].filter((kind) => ![...sets, ...others].includes(kind))
  expect(unknown.filter((kind) => !Object.hasOwn(storedKinds, kind))).toEqual([])
  expect(unknown.length).toBeGreaterThan(18)
})

test.each([true, false])(
  'a restore brings back no record of the issuer of an unknown kind (sessions kept: %s)',
  (keeps) => {
    const past = keysNotToRevive(keeps)
    expect(['oidc:ClientCredentials:x', 'oidc:Grant:x'].map((key) => past.test(key))).toEqual([true, true])
    expect(['oidc:signing-keys:x', 'user:x'].map((key) => past.test(key))).toEqual([false, false])
  },
)
