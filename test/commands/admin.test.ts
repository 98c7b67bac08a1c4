import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { Readable } from 'node:stream'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { adminCommand, adminCommands } from '../../src/commands/admin/admin.ts'
import type { CountersignOptions } from '../../src/service/config.ts'
import { type Ran, runHere, runHereIn } from '../support/command.ts'
import { makeComputer } from '../support/computer.ts'
import { hasPart } from '../support/optional.ts'
import { onPostgres, ordinaryStore } from '../support/ordinary-store.ts'
import { freePort, RedisServer } from '../support/redis-server.ts'
import { bearer, okay, type RestAnswer, rest } from '../support/rest.ts'
import { startService } from '../support/service.ts'
import { dumpStore } from '../support/store-dump.ts'
import { temporaryFolder, temporaryStore } from '../support/temporary-folder.ts'
import { makeWallet, proofOf, type TestWallet } from '../support/wallet.ts'

const secret = 'a secret for tests and for nothing else'
const userAgent = 'Telltale browser/7.7'
const refusal = ({ status, json }: RestAnswer): [number, string] => [status, json.code]

/** Runs the command in this process. */
function run(args: readonly string[], terminalAnswer?: string): Promise<Ran> {
  const isTTY = terminalAnswer !== undefined
  return runHere(adminCommand, args, Object.assign(Readable.from(isTTY ? [`${terminalAnswer}\n`] : []), { isTTY }))
}

/** What clients do at an instance. All act from its own origin. */
class Clients {
  readonly url: string
  readonly origin: string

  constructor(url: string, origin = url) {
    this.url = url
    this.origin = origin
  }

  async call(path: string, body?: object, token?: string): Promise<RestAnswer> {
    return await rest(this.url, path, body, {
      'user-agent': userAgent,
      origin: this.origin,
      ...(token === undefined ? {} : bearer(token)),
    })
  }

  async trySignIn(wallet: TestWallet): Promise<RestAnswer> {
    return await this.call('/wallet/verify', proofOf(wallet, okay(await this.call('/wallet/nonce', {}))))
  }

  async signIn(wallet: TestWallet): Promise<{ token: string; session: { id: string; userId: string } }> {
    return okay(await this.trySignIn(wallet))
  }

  async tryLink(token: string, wallet: TestWallet): Promise<RestAnswer> {
    const challenge = okay(await this.call('/wallet/nonce', { purpose: 'link' }, token))
    const { nonceId, ...proof } = proofOf(wallet, challenge)
    return await this.call('/wallet/link', { nonceId, proof }, token)
  }

  /** Starts an order and reads its challenge. */
  async order(kind: 'login' | 'sign', details: object = {}) {
    const started = okay(await this.call('/cross-device/start', { kind, ...details }))
    const { orderId, claimToken } = started
    const { challengeToken } = okay(await this.call('/cross-device/claim', { orderId, claimToken }))
    const path = `/cross-device/challenge?orderId=${orderId}`
    const { message } = okay(await this.call(path, undefined, challengeToken))
    return { orderId: orderId as string, desktopToken: started.desktopToken as string, challengeToken, message }
  }

  async tryApprove(wallet: TestWallet, order: Awaited<ReturnType<Clients['order']>>, details: object = {}) {
    const { orderId, challengeToken, message } = order
    const { publicKeyHex, signatureHex } = proofOf(wallet, { nonceId: '', message })
    const proof = { publicKeyHex, signatureHex }
    return await this.call('/cross-device/approve', { orderId, challengeToken, proof, ...details })
  }

  async tryFinalize({ orderId, desktopToken }: { orderId: string; desktopToken: string }, details: object = {}) {
    return await this.call('/cross-device/finalize', { orderId, desktopToken, ...details })
  }

  async isSignedIn(token: string): Promise<boolean> {
    return (await this.call('/session', undefined, token)).status === 200
  }
}

const postgres: [name: string, open: () => Promise<string>] = ['PostgreSQL', async () => (await ordinaryStore()).store]
const stores: [name: string, open: () => string | Promise<string>][] = onPostgres
  ? [postgres]
  : [
      ['an SQLite file', temporaryStore],
      ...(hasPart('redis-server')
        ? ([
            [
              'Redis',
              async () => {
                // One of our own, because everything in it is looked at.
                const server = await RedisServer.start()
                onTestFinished(() => server[Symbol.asyncDispose]())
                return server.url
              },
            ],
          ] as [string, () => Promise<string>][])
        : []),
    ]

describe.each(stores)('operators on %s', (_name, open) => {
  /** Two running instances of a service, and the command beside them. */
  async function start(more: CountersignOptions = {}) {
    const store = await open()
    const settings = { store, secret, confirmationCode: 'return', publicUrl: 'http://localhost:8080', ...more } as const
    const [one, two] = [await startService(settings), await startService(settings)]
    const at = (url: string): Clients => new Clients(url, settings.publicUrl)
    const admin = async (...args: string[]): Promise<string> => {
      const { code, stdout, stderr } = await run([...args, '--store', store])
      expect([code, stderr]).toEqual([0, ''])
      return stdout
    }
    const refused = async (...args: string[]): Promise<string> => {
      const { code, stdout, stderr } = await run([...args, '--store', store])
      expect([code, stdout]).toEqual([1, ''])
      expect(stderr).toMatch(/^countersign admin: [^\n]+\n$/)
      return stderr
    }
    return { store, here: at(one.url), there: at(two.url), admin, refused }
  }

  test('find a user by every name of a wallet, and list and end sessions', async () => {
    const { here, there, admin, refused } = await start()
    const wallet = makeWallet()
    const { token, session } = await here.signIn(wallet)
    const second = await here.signIn(wallet)
    const { userId } = session
    const { address, publicKeyHex } = wallet
    const names = [
      address,
      address.replaceAll(' ', ''),
      `nimiq:${address}`,
      publicKeyHex,
      `nimiq:${publicKeyHex.toUpperCase()}`,
    ]
    for (const name of names) {
      const found = await admin('find', name)
      for (const part of [`user ${userId}`, address, publicKeyHex, '2 sessions']) expect(found).toContain(part)
    }
    const { wallets, users } = JSON.parse(await admin('find', address, '--json'))
    expect(wallets).toEqual([
      { wallet: { adapterId: 'nimiq', subject: publicKeyHex, publicKeyHex, address }, userIds: [userId] },
    ])
    expect(users).toMatchObject([
      { id: userId, user: { createdAt: expect.any(Number) }, sessions: [{ userAgent }, { userAgent }] },
    ])
    expect(await admin('user', userId)).toMatch(/\n {2}created \d{4}-\d\d-.*\n {2}1 wallet\n/)
    const listed = await admin('sessions', userId)
    for (const part of [session.id, second.session.id, JSON.stringify(userAgent), 'expires '])
      expect(listed).toContain(part)
    expect(listed + JSON.stringify(users)).not.toContain(token)

    expect(await admin('end-session', userId, session.id)).toBe('ended 1 session\n')
    expect([await there.isSignedIn(token), await there.isSignedIn(second.token)]).toEqual([false, true])
    expect(await refused('end-session', userId, session.id)).toContain('no live session')
    expect(await admin('end-sessions', userId)).toBe('ended 1 session\n')
    expect(await there.isSignedIn(second.token)).toBe(false)
    expect(await admin('sessions', userId)).toBe('no sessions\n')
    expect(await refused('user', 'usr_unknown')).toContain('no user has this id')
    expect(await refused('find', makeWallet().address)).toContain('nothing is known')
  })

  test('block a wallet for sign-ins, links and orders of both kinds in every instance, until it is unblocked', async () => {
    const { here, there, admin, refused } = await start()
    const [wallet, other] = [makeWallet(), makeWallet()]
    const { token } = await here.signIn(wallet)
    const another = await there.signIn(other)
    const approved = { login: await there.order('login'), sign: await there.order('sign') }
    const returnCodes: Record<string, string> = {}
    for (const [kind, order] of Object.entries(approved)) {
      returnCodes[kind] = okay(await there.tryApprove(wallet, order)).returnCode
    }
    expect(await admin('block', `nimiq:${wallet.address}`)).toMatch(/^nimiq NQ.*: blocked; ended 1 session\n$/)
    const no: [number, string] = [403, 'LOGIN_REFUSED']
    expect(await there.isSignedIn(token)).toBe(false)
    expect(refusal(await there.trySignIn(wallet))).toEqual(no)
    expect(refusal(await there.tryLink(another.token, wallet))).toEqual(no)
    for (const kind of ['login', 'sign'] as const) {
      const details = { returnCode: returnCodes[kind] }
      expect(refusal(await here.tryFinalize(approved[kind], details)), kind).toEqual(no)
      const order = await there.order(kind)
      expect(refusal(await there.tryApprove(wallet, order)), kind).toEqual(no)
      // Another wallet can approve it.
      okay(await there.tryApprove(other, order))
    }
    expect(await admin('find', wallet.address)).toContain('blocked since ')
    expect(await admin('block', wallet.publicKeyHex)).toContain('was blocked before')
    expect(await admin('unblock', wallet.address)).toContain('unblocked')
    expect(await admin('unblock', wallet.address)).toContain('was not blocked')
    for (const kind of ['login', 'sign'] as const)
      okay(await here.tryFinalize(approved[kind], { returnCode: returnCodes[kind] }))
    okay(await there.trySignIn(wallet))

    // A wallet that nobody has seen is told by its key and adapter.
    const unseen = makeWallet()
    expect(await refused('block', unseen.address)).toContain('Use the public key in hex')
    expect(await refused('block', unseen.publicKeyHex)).toContain(`use nimiq:${unseen.publicKeyHex} or `)
    await admin('block', `nimiq:${unseen.publicKeyHex}`)
    expect(refusal(await there.trySignIn(unseen))).toEqual(no)
    await admin('unblock', `nimiq:${unseen.publicKeyHex}`)
    okay(await there.trySignIn(unseen))
  })

  test('move a wallet that is a user of its own to another user', async () => {
    const { here, there, admin, refused } = await start()
    const [wallet, other] = [makeWallet(), makeWallet()]
    const [from, to] = [await here.signIn(wallet), await here.signIn(other)]
    const moved = JSON.parse(await admin('move-wallet', wallet.address, to.session.userId, '--json'))
    expect(moved).toMatchObject({ userId: to.session.userId, movedFrom: from.session.userId })
    expect([await there.isSignedIn(from.token), await there.isSignedIn(to.token)]).toEqual([false, true])
    expect((await there.signIn(wallet)).session.userId).toBe(to.session.userId)
    expect(await admin('move-wallet', wallet.address, to.session.userId)).toContain('already')
    expect(await admin('user', from.session.userId)).toContain('0 wallets')
    expect(await refused('move-wallet', wallet.address, 'usr_unknown')).toContain('no user has this id')
  })

  test('export all of a user, delete it, and leave nothing but tombstones and what expires within minutes', async () => {
    const { store, here, there, admin, refused } = await start()
    const [wallet, second] = [makeWallet(), makeWallet()]
    const { session, token } = await here.signIn(wallet)
    const { userId } = session
    okay(await here.tryLink(token, second))
    okay(await here.call('/wallet/nonce', { purpose: 'link' }, token))
    const computer = await makeComputer()
    const login = await here.order('login', { computerKey: computer.key, displayTitle: 'Telltale title' })
    const { returnCode } = okay(await here.tryApprove(wallet, login, { rememberComputer: true }))
    const computerProof = await computer.prove(login)
    const byOrder = okay(await here.tryFinalize(login, { returnCode, computerProof }))
    const approved = await here.order('sign')
    okay(await here.tryApprove(second, approved))
    const expected = { adapterId: 'nimiq', expectedAddress: wallet.address }
    const awaited = okay(await here.call('/cross-device/start', { kind: 'sign', ...expected }))

    const exported = JSON.parse(await admin('export', userId))
    expect(exported).toMatchObject({
      id: userId,
      user: { id: userId },
      wallets: [wallet, second].map(({ address }) => ({ address })),
    })
    expect(exported.wallets[0].knownComputers).toMatchObject([{ userAgent }])
    expect(exported.sessions).toHaveLength(2)
    const orderIds = [login.orderId, approved.orderId, awaited.orderId]
    expect(exported.orders.map(({ orderId }: { orderId: string }) => orderId).sort()).toEqual(orderIds.sort())
    const secrets = [token, byOrder.token, login.desktopToken, login.challengeToken, returnCode, awaited.claimToken]
    for (const each of secrets) expect(JSON.stringify(exported)).not.toContain(each)
    expect(JSON.stringify(exported)).not.toMatch(/hash|signature|nonce|"message"/i)

    const spellings = [wallet, second].flatMap(({ address, publicKeyHex }) => {
      const key = Buffer.from(publicKeyHex, 'hex')
      const compact = address.replaceAll(' ', '')
      return [address, compact, compact.toLowerCase(), publicKeyHex, publicKeyHex.toUpperCase()].concat(
        (['base64', 'base64url'] as const).map((encoding) => key.toString(encoding)),
      )
    })
    const texts = [
      userId,
      ...spellings,
      session.id,
      byOrder.session.id,
      ...orderIds,
      userAgent,
      '127.0.0.1',
      'Telltale title',
    ]
    // Without this, what is not found later says nothing.
    const before = (await dumpStore(store)).map(({ key, text }) => `${key} ${text}`).join('\n')
    for (const each of [userId, wallet.address, second.publicKeyHex, session.id, userAgent])
      expect(before).toContain(each)

    const asked = await run(['delete', userId, '--store', store])
    expect([asked.code, asked.stdout]).toEqual([2, ''])
    expect(asked.stderr).toContain('Add --yes')
    expect((await run(['delete', userId, '--store', store], 'n')).stderr).toContain('nothing was done')
    expect(await there.isSignedIn(token)).toBe(true)
    expect(await run(['delete', userId, '--store', store], 'yes')).toMatchObject({
      code: 0,
      stdout: `deleted ${userId}\n`,
    })
    expect([await there.isSignedIn(token), await there.isSignedIn(byOrder.token)]).toEqual([false, false])
    expect(refusal(await there.tryFinalize(approved))).toEqual([409, 'ORDER_CANCELLED'])

    const left = await dumpStore(store)
    const naming = left.filter(({ key, text }) => texts.some((each) => `${key} ${text}`.includes(each)))
    const families = naming.map(({ key }) => /(?:^|:)(user|session|order):/.exec(key)?.[1])
    expect([...families].sort()).toEqual(['order', 'order', 'order', 'session', 'session', 'user'])
    for (const { key, ttlMs } of naming) expect(ttlMs, key).toBeLessThanOrEqual(10 * 60_000)
    for (const { key, text } of naming) {
      if (/session:|user:/.test(key)) expect(text).not.toMatch(/NQ\d\d|nimiq|Telltale|127\.0\.0\.1/)
    }
    expect(await refused('user', userId)).toContain('no user has this id')
    expect((await there.signIn(wallet)).session.userId).not.toBe(userId)
  })

  test('delete a user with the audit events that wait for a webhook, and leave those of others', async () => {
    const [port, keyPrefix] = [await freePort(), 'admin-events']
    const webhookSecret = `whsec_${Buffer.from('a secret of the tests, and of no use').toString('base64')}`
    const { store, here } = await start({
      keyPrefix,
      webhook: { secret: webhookSecret, url: `http://127.0.0.1:${port}/` },
    })
    const waiting = async (): Promise<string> => {
      const left = await dumpStore(store)
      return left.map(({ key, text }) => (key.includes('webhook:') ? text : '')).join('')
    }
    const [wallet, other] = [makeWallet(), makeWallet()]
    const { session } = await here.signIn(wallet)
    const { session: kept } = await here.signIn(other)
    const order = await here.order('login')
    const { returnCode } = okay(await here.tryApprove(wallet, order))
    okay(await here.tryFinalize(order, { returnCode }))
    await vi.waitFor(async () => expect(await waiting()).toContain('order.finalized'), { timeout: 20_000 })
    vi.stubEnv('COUNTERSIGN_KEY_PREFIX', keyPrefix)
    vi.stubEnv('COUNTERSIGN_WEBHOOK_URL', `http://127.0.0.1:${port}/`)
    onTestFinished(() => void vi.unstubAllEnvs())
    expect(await run(['delete', session.userId, '--store', store, '--yes'])).toMatchObject({ code: 0 })
    const left = await waiting()
    expect(left.match(/operator\.acted[^}]*/g)).toEqual([expect.stringContaining('delete')])
    for (const each of [session.userId, wallet.address, order.orderId]) expect(left).not.toContain(each)
    expect(left).toContain(kept.userId)
  })
})

test('deleting a user lifts no block', async () => {
  const store = temporaryStore()
  const clients = new Clients((await startService({ store })).url)
  const wallet = makeWallet()
  const { session } = await clients.signIn(wallet)
  await run(['block', wallet.address, '--store', store])
  expect(await run(['delete', session.userId, '--yes', '--store', store])).toMatchObject({ code: 0, stderr: '' })
  expect(refusal(await clients.trySignIn(wallet))).toEqual([403, 'LOGIN_REFUSED'])
})

test('blocks hold with a session host of the application’s own, too', async () => {
  const store = temporaryStore()
  const unused = (): never => {
    throw new Error('not called')
  }
  const sessionHost = {
    resolveUser: async () => ({ id: 'customer 7' }),
    createSession: unused,
    orderSessionId: unused,
    endOrderSession: unused,
    currentSession: unused,
    signOut: unused,
    listSessions: unused,
    revokeSession: unused,
    introspect: unused,
  }
  const { url } = await startService({ store, sessionHost })
  const wallet = makeWallet()
  await run(['block', `nimiq:${wallet.publicKeyHex}`, '--store', store])
  expect(refusal(await new Clients(url).trySignIn(wallet))).toEqual([403, 'LOGIN_REFUSED'])
})

test('a session whose id begins with a hyphen, as one in 64 does, is ended like any other', async () => {
  const store = temporaryStore()
  const { url } = await startService({ store })
  const [clients, wallet] = [new Clients(url), makeWallet()]
  let { token, session } = await clients.signIn(wallet)
  while (!session.id.startsWith('-')) ({ token, session } = await clients.signIn(wallet))
  expect(await run(['end-session', session.userId, session.id, '--json', '--store', store])).toEqual({
    code: 0,
    stdout: '{"sessionsEnded":1}\n',
    stderr: '',
  })
  expect(refusal(await clients.call('/sessions', undefined, token))).toEqual([401, 'SESSION_INVALID'])
})

test('the help names every command and option', async () => {
  const { code, stdout } = await run(['--help'])
  expect(code).toBe(0)
  for (const { name, takes } of adminCommands) expect(stdout).toContain(`  ${[name, ...takes].join(' ')} `)
  for (const name of ['--store', '--json', '--yes', '--help']) expect(stdout).toContain(`  ${name}`)
  expect(stdout.split('\n').filter((line) => line.length > 78)).toEqual([])
})

describe('the usage is wrong', () => {
  test.each<[string, readonly string[]]>([
    ['a command is missing', []],
    ['unknown command "ban"', ['ban', 'x']],
    ['write: find WALLET', ['find']],
    ['write: end-session USER_ID SESSION_ID', ['end-session', 'a', '']],
    ['--store is empty', ['user', 'a', '--store', '']],
    ['unknown argument "--force"', ['delete', 'a', '--force']],
    ['cannot be undone. Add --yes', ['delete', 'a']],
  ])('%s', async (message, args) => {
    const folder = temporaryFolder()
    const store = `sqlite:${join(folder, 'a.db')}`
    await startService({ store })
    const { code, stdout, stderr } = await run(args.includes('--store') ? args : [...args, '--store', store])
    expect(stderr).toMatch(/^countersign admin: [^\n]+; --help shows the usage\n$/)
    expect(stderr).toContain(message)
    expect([code, stdout]).toEqual([2, ''])
  })
})

test('a change is made and reported although its audit event cannot be stored', async () => {
  const store = temporaryStore()
  const clients = new Clients((await startService({ store })).url)
  const wallet = makeWallet()
  using database = new DatabaseSync(store.slice('sqlite:'.length))
  database.exec(`CREATE TRIGGER no_room BEFORE INSERT ON entries WHEN NEW.key LIKE 'webhook:%'
    BEGIN SELECT RAISE(ABORT, 'no room'); END`)
  const args = ['block', `nimiq:${wallet.publicKeyHex}`, '--store', store]
  const blocked = await runHereIn({ COUNTERSIGN_WEBHOOK_URL: 'https://hooks.example/' }, adminCommand, args)
  expect(blocked).toEqual({
    code: 0,
    stdout: expect.stringContaining('blocked'),
    stderr: expect.stringMatching(/^countersign admin: done, but its audit event could not be stored: [^\n]+\n$/),
  })
  expect(refusal(await clients.trySignIn(wallet))).toEqual([403, 'LOGIN_REFUSED'])
})

test('a store that is not there is not made, and one in memory is refused', async () => {
  const missing = await run(['user', 'a', '--store', 'sqlite:./missing.db'])
  expect(missing).toEqual({
    code: 1,
    stdout: '',
    stderr: 'countersign admin: there is no store file ./missing.db. Name it with --store or COUNTERSIGN_STORE\n',
  })
  expect((await run(['user', 'a', '--store', 'sqlite::memory:'])).stderr).toContain('the store is in memory')
  const secretly = await run(['user', 'a', '--store', 'redis://user:hidden@127.0.0.1:1'])
  expect(secretly.code).toBe(1)
  expect(secretly.stderr).not.toContain('hidden')
})
