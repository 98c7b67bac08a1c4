import { hash, randomUUID } from 'node:crypto'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { generatePrivateKey, privateKeyToAccount } from 'viem/accounts'
import { afterEach, describe, expect, onTestFinished, test, vi } from 'vitest'
import { adminCommand } from '../../src/commands/admin/admin.ts'
import type { CountersignOptions } from '../../src/service/config.ts'
import { openStore } from '../../src/store/open.ts'
import { administrationOn, newWallet } from '../core/users/support.ts'
import { runHere } from '../support/command.ts'
import { misspelt } from '../support/evm.ts'
import { rest } from '../support/rest.ts'
import { startService } from '../support/service.ts'
import { sharedStores } from '../support/stores.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'
import { makeWallet, proofOf } from '../support/wallet.ts'

afterEach(() => void vi.unstubAllEnvs())

/** A store file, or that of the environment, and what runs the command on it. */
async function newStore(isFile = true) {
  const folder = temporaryFolder()
  const store = `sqlite:${join(folder, 'store.db')}`
  const file = (name: string, content: string) => {
    const path = join(folder, name)
    writeFileSync(path, content)
    return path
  }
  const run = (...args: string[]) => runHere(adminCommand, [...args, ...(isFile ? ['--store', store] : [])])
  const json = async (...args: string[]) => {
    const { code, stdout, stderr } = await run(...args, '--json')
    expect([code, stderr]).toEqual([0, ''])
    return JSON.parse(stdout)
  }
  return { store, file, run, json }
}

async function start(store: string, options: CountersignOptions = {}) {
  const { url } = await startService({ store, adapters: ['nimiq', 'ed25519', 'ethereum'], ...options })
  return {
    async signIn(wallet = makeWallet()) {
      const { json } = await rest(url, '/wallet/nonce', {})
      return (await rest(url, '/wallet/verify', proofOf(wallet, json))).json
    },
    async signInEthereum(account: ReturnType<typeof privateKeyToAccount>) {
      const named = { adapterId: 'ethereum', address: account.address, chainId: '1' }
      const { json } = await rest(url, '/wallet/nonce', named)
      const signatureHex = (await account.signMessage({ message: json.message })).slice(2)
      return (await rest(url, '/wallet/verify', { ...named, nonceId: json.nonceId, publicKeyHex: '', signatureHex }))
        .json
    },
  }
}

test('list has every user once, the newest first, page by page, with groups and the last sign-in', async () => {
  const { store, file, run, json } = await newStore()
  const { signIn } = await start(store)
  const sessions = []
  const wallets = [makeWallet(), makeWallet(), makeWallet()]
  for (const wallet of wallets) sessions.push((await signIn(wallet)).session)
  const newest = sessions.map(({ userId }) => userId).reverse()
  vi.stubEnv(
    'COUNTERSIGN_PEOPLE',
    file('people.json', JSON.stringify({ [`nimiq:${wallets[2]!.address}`]: { groups: ['staff'] } })),
  )
  const { users, next } = await json('list')
  expect([users.map(({ id }: { id: string }) => id), next]).toEqual([newest, undefined])
  expect(users[0]).toMatchObject({
    groups: ['staff'],
    lastSignInAt: sessions[2].createdAt,
    wallets: [{ address: wallets[2]!.address }],
    sessions: [{ id: sessions[2].id }],
  })
  const pages = []
  let after: string[] = []
  for (;;) {
    const page = await json('list', '--limit', '1', ...after)
    pages.push(...page.users.map(({ id }: { id: string }) => id))
    if (page.next === undefined) break
    after = ['--after', page.next]
  }
  expect(pages).toEqual(newest)
  const { stdout } = await run('list', '--limit', '2')
  expect(stdout).toMatch(
    new RegExp(`^user ${newest[0]}, 1 session, created .*, signed in .*, groups staff\n  nimiq NQ`),
  )
  expect(stdout).toMatch(/\nmore with --after [\w-]+\n$/)
  expect(await json('count')).toEqual({ users: 3, sessions: 3 })
  expect((await run('count')).stdout).toBe('3 users, 3 sessions\n')
})

test.each([
  [['list', '--limit', '0'], '--limit must be 1 to 1000'],
  [['list', '--limit', '1001'], '--limit must be 1 to 1000'],
  [['list', '--after', 'x'], '--after takes the cursor of a list'],
  [['count', '--limit', '5'], 'count takes no --limit'],
  [['import'], 'write: import FILE'],
  [['count', '--add'], 'count takes no --add'],
  [['count', '--keep-sessions'], 'count takes no --keep-sessions'],
])('wrong usage: %j', async (args, problem) => {
  const { store, run } = await newStore()
  await start(store)
  expect(await run(...args)).toMatchObject({ code: 2, stderr: expect.stringContaining(problem) })
})

test('users of an application are the application’s to list and to import', async () => {
  const { store, file, run } = await newStore()
  const { signIn } = await start(store, { resolveLogin: () => ({ id: 'user-1' }) })
  await signIn()
  for (const args of [['list'], ['count'], ['import', file('users.jsonl', '')]]) {
    const { code, stderr } = await run(...args)
    expect([code, stderr]).toEqual([
      1,
      expect.stringMatching(/^countersign admin: the application keeps the users itself [^\n]+\n$/),
    ])
  }
})

describe('import', () => {
  const line = (wallet: string, userId: string) => JSON.stringify({ wallet, user_id: userId })
  const account = privateKeyToAccount(generatePrivateKey())
  const nimiq = makeWallet()

  test('gives wallets to users, who sign in as these from then on, and changes nothing when it is repeated', async () => {
    vi.stubEnv('COUNTERSIGN_ADAPTERS', 'nimiq,ed25519,ethereum')
    const { store, file, json } = await newStore()
    const { signIn, signInEthereum } = await start(store)
    const users = file(
      'users.jsonl',
      `\uFEFF${line(`ethereum:${account.address.toLowerCase()}`, 'old-7')}\r\n\n${line(`nimiq:${nimiq.publicKeyHex}`, 'old-7')}\n`,
    )
    expect(await json('import', users)).toEqual({ wallets: 2, users: 1, added: 2, extended: [] })
    expect(await json('import', users)).toEqual({ wallets: 2, users: 1, added: 0, extended: [] })
    expect((await signInEthereum(account)).session).toMatchObject({ userId: 'old-7', address: account.address })
    expect((await signIn(nimiq)).session.userId).toBe('old-7')
    const [user] = (await json('list')).users
    expect(user).toMatchObject({ id: 'old-7', wallets: [{ address: account.address }, { address: nimiq.address }] })
  })

  test.each<[string, readonly string[], string]>([
    ['text that is no JSON', ['{'], 'line 1: it is no JSON object'],
    ['another field', ['{"wallet": "ethereum:0x", "user_id": "a", "x": 1}'], 'line 1: it must be'],
    ['no user id', [line(`nimiq:${nimiq.publicKeyHex}`, '')], 'line 1: user_id must be one line'],
    ['a user id of two lines', [line(`nimiq:${nimiq.publicKeyHex}`, 'a\nb')], 'line 1: user_id must be one line'],
    ['a wallet without an adapter', [line(account.address, 'a')], 'line 1: the wallet must begin with the id'],
    [
      'an adapter that is unknown',
      [line(`bitcoin:${account.address}`, 'a')],
      'line 1: the wallet must begin with the id',
    ],
    ['an adapter that is off', [line('solana:11111111111111111111111111111112', 'a')], 'line 1: the wallet must begin'],
    [
      'an address with a wrong checksum',
      [line(`ethereum:${misspelt(account.address)}`, 'a')],
      'line 1: this is no wallet',
    ],
    [
      'an address that does not tell the key',
      [line(`nimiq:${nimiq.address}`, 'a')],
      'line 1: this is no wallet of nimiq',
    ],
    ['a user id like a wallet', [line(`nimiq:${nimiq.publicKeyHex}`, 'nimiq:x')], 'line 1: user_id begins with the id'],
    [
      'a user id like a wallet of an adapter that is off',
      [line(`nimiq:${nimiq.publicKeyHex}`, 'solana:x')],
      'line 1: user_id',
    ],
    [
      'a wallet twice',
      [line(`ethereum:${account.address}`, 'a'), line(`ethereum:${account.address.toLowerCase()}`, 'a')],
      'line 2: the wallet is in line 1, too',
    ],
    [
      '21 wallets of a user',
      Array.from({ length: 21 }, () => line(`nimiq:${makeWallet().publicKeyHex}`, 'a')),
      'line 21: a user has at most 20',
    ],
  ])('refuses the whole file for %s', async (_what, lines, problem) => {
    vi.stubEnv('COUNTERSIGN_ADAPTERS', 'nimiq,ed25519,ethereum')
    const { store, file, run, json } = await newStore()
    await start(store)
    const good = line(`nimiq:${makeWallet().publicKeyHex}`, 'b')
    const { code, stderr } = await run('import', file('users.jsonl', [...lines, good].join('\n')))
    expect([code, stderr]).toEqual([1, expect.stringContaining(problem)])
    expect(stderr).toMatch(/^[^\n]+; nothing was imported\n$/)
    expect(await json('count')).toEqual({ users: 0, sessions: 0 })
  })

  test('an id that is made here is taken for the wallet that it follows from, and no other', async () => {
    const { store, file, run } = await newStore()
    const { signIn } = await start(store)
    const victim = makeWallet()
    const { publicKeyHex } = victim
    const id = `usr_${hash('sha256', `nimiq:${publicKeyHex}`, 'base64url').slice(0, 22)}`
    const mine = file('mine.jsonl', line(`nimiq:${nimiq.publicKeyHex}`, id))
    expect((await run('import', mine)).stderr).toContain('line 1: user_id has the form of ids that are made here')
    expect((await run('import', mine, '--add')).code).toBe(1)
    await run('import', file('theirs.jsonl', line(`nimiq:${publicKeyHex}`, id)))
    expect((await signIn(victim)).session.userId).toBe(id)
    expect((await signIn(nimiq)).session.userId).not.toBe(id)
  })

  test('a user who exists gets another wallet with --add only, which says whose wallets they had', async () => {
    const { file, run, json, store } = await newStore()
    const [first, second] = [makeWallet(), makeWallet()]
    const one = line(`nimiq:${first.publicKeyHex}`, '42')
    // Made before the service has started.
    const made = await run('import', file('first.jsonl', one))
    expect(made).toMatchObject({
      code: 0,
      stderr: expect.stringMatching(/there is no store file \S+ yet; it is made\n$/),
    })
    const both = file('both.jsonl', [one, line(`nimiq:${second.publicKeyHex}`, '42')].join('\n'))
    const { code, stderr } = await run('import', both)
    expect([code, stderr]).toEqual([1, expect.stringContaining('line 2: user 42 exists, and gets another wallet only')])
    expect(await json('user', '42')).toMatchObject({ wallets: [{ address: first.address }] })
    expect((await run('import', both, '--add')).stdout).toBe(
      `2 wallets of 1 user, 1 of them new\nuser 42 was there before, with 1 wallet\n` +
        `  had nimiq ${first.address}, key ${first.publicKeyHex}\n  got nimiq ${second.address}, key ${second.publicKeyHex}\n`,
    )
    const { signIn } = await start(store)
    expect((await signIn(second)).session.userId).toBe('42')
  })

  test('refuses a wallet of another user, one that is blocked, and a file that is not there', async () => {
    const { store, file, run, json } = await newStore()
    const { signIn } = await start(store)
    const { session } = await signIn(nimiq)
    const taken = file(
      'taken.jsonl',
      [line(`nimiq:${makeWallet().publicKeyHex}`, 'b'), line(`nimiq:${nimiq.publicKeyHex}`, 'b')].join('\n'),
    )
    expect((await run('import', taken)).stderr).toContain(`line 2: the wallet is user ${session.userId}’s`)
    const blocked = makeWallet()
    const opened = await openStore(store)
    onTestFinished(() => opened.close())
    const { publicKeyHex, address } = blocked
    await administrationOn(opened).block({ adapterId: 'nimiq', subject: publicKeyHex, publicKeyHex, address })
    expect((await run('import', file('blocked.jsonl', line(`nimiq:${publicKeyHex}`, 'b')))).stderr).toContain(
      'line 1: the wallet is blocked',
    )
    expect((await run('import', '/nowhere.jsonl')).stderr).toContain('cannot be read: ENOENT')
    expect(await json('count')).toEqual({ users: 1, sessions: 1 })
  })
})

describe.each(sharedStores)('a user whose id is no plain ASCII, on %s', (_name, address) => {
  const ids = ['ünal', 'Ada Lovelace', '~tilde', '山田', 'x'.repeat(200)]

  test('is listed, counted, found, blocked and deleted as any other', async () => {
    vi.stubEnv('COUNTERSIGN_KEY_PREFIX', `ids-${randomUUID()}`)
    vi.stubEnv('COUNTERSIGN_STORE', await address())
    const { file, run } = await newStore(false)
    const wallets = ids.map(() => makeWallet())
    const lines = ids.map((id, i) => JSON.stringify({ wallet: `nimiq:${wallets[i]!.publicKeyHex}`, user_id: id }))
    expect((await run('import', file('users.jsonl', lines.join('\n')))).code).toBe(0)
    expect((await run('count')).stdout).toBe('5 users, 0 sessions\n')
    const { users } = JSON.parse((await run('list', '--json')).stdout)
    expect(users.map(({ id }: { id: string }) => id).sort()).toEqual([...ids].sort())
    for (const [i, id] of ids.entries()) {
      const found = JSON.parse((await run('find', wallets[i]!.address, '--json')).stdout)
      expect(found).toMatchObject({ wallets: [{ userIds: [id] }], users: [{ id }] })
    }
    expect((await run('block', wallets[0]!.address)).stdout).toMatch(/: blocked; ended 0 sessions/)
    expect((await run('user', 'ünal')).stdout).toMatch(/blocked since/)
    expect((await run('delete', 'ünal', '--yes')).code).toBe(0)
    expect((await run('count')).stdout).toBe('4 users, 0 sessions\n')
  })

  test('is found under the key of before, and stored anew', async () => {
    const keyPrefix = `ids-${randomUUID()}`
    const store = await openStore(await address(), { keyPrefix })
    onTestFinished(() => store.close())
    const wallet = newWallet()
    await administrationOn(store).import([{ wallet, userId: 'ünal', line: 1 }], false)
    const records: string[] = []
    for await (const { key } of store.scan?.('user:') ?? []) records.push(key)
    const value = (await store.take(records[0]!))!
    await store.create('user:ünal', value, 'forever')
    expect((await administrationOn(store).find('ünal'))?.wallets).toMatchObject([{ subject: wallet.subject }])
    expect(await store.get('user:ünal')).toBeUndefined()
    expect(await administrationOn(store).count()).toEqual({ users: 1, sessions: 0 })
  })
})
