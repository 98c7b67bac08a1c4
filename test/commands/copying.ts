import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { isDeepStrictEqual } from 'node:util'
import * as client from 'openid-client'
import { expect, onTestFinished } from 'vitest'
import { type Counts, copyStore } from '../../src/commands/admin/copy.ts'
import { runCommand } from '../../src/commands/command.ts'
import { kindOf, storedKinds } from '../../src/commands/stored-kinds.ts'
import { resolveSettings } from '../../src/service/config.ts'
import { openMarkedStore } from '../../src/service/service-store.ts'
import type { Store } from '../../src/store/store.ts'
import { connect, contentOf, refusalOf, request, shop, startIssuer } from '../oidc/support.ts'
import { runHere } from '../support/command.ts'
import { makeComputer } from '../support/computer.ts'
import { PostgresServer } from '../support/postgres-server.ts'
import { freePort, RedisServer } from '../support/redis-server.ts'
import { bearer, rest } from '../support/rest.ts'
import { dumpStore } from '../support/store-dump.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'
import { makeWallet, proofOf } from '../support/wallet.ts'
import { restJson, signIn, waitingOrder } from './calls.ts'

/** A new file, which is not there yet. */
export function newFile(name = 'store.db'): string {
  return join(temporaryFolder(), name)
}

type SearchableStore = Store & { readonly scan: NonNullable<Store['scan']> }

/** Opens a store as `admin copy` does; it is closed when the test ends. */
export async function openBare(store: string): Promise<SearchableStore> {
  const opened = await openMarkedStore(resolveSettings({ store }))
  onTestFinished(() => opened.close())
  return opened.store as SearchableStore
}

type Request = Parameters<typeof copyStore>[0]

/** Copies without the minute in which running services find the mark. */
export async function copyAtOnce(from: string, to: string, more: Partial<Request> = {}) {
  const stores = { from: await openBare(from), to: await openBare(to) }
  const none = { again: false, secretFile: undefined, secrets: undefined, say: () => {}, waitMs: 0 }
  return await copyStore({ ...stores, ...none, ...more })
}

/** What 1.23 leaves out. Kinds of the issuer have the names of its library. */
const leftOut = [
  ...['nonce', 'link-nonce', 'order', 'inbox', 'webhook', 'logout', 'oidc:Interaction', 'oidc:AuthorizationCode'],
  ...['oidc:PushedAuthorizationRequest', 'oidc:DeviceCode', 'oidc:DeviceUserCode'],
]

/** An empty store of each kind, in the order of copies in all six directions. */
async function emptyStores(): Promise<string[]> {
  const [redis, postgres] = [await RedisServer.start(), await PostgresServer.start()]
  onTestFinished(async () => {
    await redis[Symbol.asyncDispose]()
    await postgres[Symbol.asyncDispose]()
  })
  await postgres.psql('CREATE DATABASE second')
  return [
    ...[`${redis.url}/0`, postgres.url(), `sqlite:${newFile()}`],
    ...[postgres.url('second'), `${redis.url}/1`, `sqlite:${newFile()}`],
  ]
}

/** All that a copy takes along, by key, but what ends within minutes. */
async function copiedIn(store: string): Promise<ReadonlyMap<string, string>> {
  const found = new Map<string, string>()
  for await (const { key, value } of (await openBare(store)).scan('')) {
    const kind = kindOf(key)
    if (storedKinds[kind]?.isCopied && kind !== 'limit') found.set(key, value)
  }
  return found
}

/** What a direction of a rehearsal came to. */
interface Figures {
  /** Such as `sqlite to redis`. */
  readonly direction: string
  readonly counts: Counts
  readonly seconds: number
}

/**
 * Takes a service with so many users from SQLite through Redis and PostgreSQL in all six directions. `copyFirst` copies
 * the first store while a service is still running on it.
 */
export async function rehearse(
  users: number,
  copyFirst: (url: string, from: string, to: string, secretFile: string) => Promise<Counts>,
): Promise<readonly Figures[]> {
  const stores = await emptyStores()
  const [file, secretFile] = [newFile(), newFile('secret')]
  const port = await freePort()
  const options = { port, confirmationCode: 'return', publicUrl: `http://localhost:${port}` } as const
  let from = `sqlite:${file}`
  let running = await startIssuer([shop], { ...options, store: from })
  const { url } = running

  const tokens: string[] = []
  for (let done = 0; done < users; done += 50) {
    const some = Array.from({ length: Math.min(50, users - done) }, () => signIn(url, makeWallet()))
    tokens.push(...(await Promise.all(some)).map(({ token }) => token))
  }
  const [first = ''] = tokens
  const wallet = makeWallet()
  const [signedIn, ended] = [await signIn(url, wallet), await signIn(url, wallet)]
  await restJson(url, '/sign-out', {}, bearer(ended.token))
  const blocked = makeWallet()
  await signIn(url, blocked)
  const block = ['admin', 'block', `nimiq:${blocked.publicKeyHex}`, '--store', from]
  expect((await runHere(runCommand, block)).code).toBe(0)
  const computer = await makeComputer()
  const byComputer = async (isKnown: boolean): Promise<number> => {
    const { holder, approval } = await waitingOrder(url, wallet, { computerKey: computer.key })
    const { returnCode } = await restJson(url, '/cross-device/approve', approval)
    const computerProof = await computer.prove(holder)
    return (await rest(url, '/cross-device/finalize', { ...holder, computerProof, ...(isKnown ? {} : { returnCode }) }))
      .status
  }
  expect([await byComputer(true), await byComputer(false)]).toEqual([400, 200])
  const offline = { scope: 'openid profile offline_access', prompt: 'consent' }
  const [app, used] = [await connect(url, offline), await connect(url, offline)]
  await client.refreshTokenGrant(used.config, used.tokens.refresh_token ?? '')
  let refresh = app.tokens.refresh_token ?? ''
  const keys = async () => (await (await fetch(`${url}/.well-known/jwks.json`)).json()).keys
  const before = await keys()
  const nonce = proofOf(wallet, await restJson(url, '/wallet/nonce', {}))
  const spent = proofOf(wallet, await restJson(url, '/wallet/nonce', {}))
  await restJson(url, '/wallet/verify', spent)
  const left = await connect(url, offline)
  await restJson(url, '/apps/disconnect', { clientId: 'shop' }, bearer(left.token))
  const [lost, kept] = [makeWallet(), await signIn(url, makeWallet())]
  const { nonceId, ...proof } = proofOf(
    lost,
    await restJson(url, '/wallet/nonce', { purpose: 'link' }, bearer(kept.token)),
  )
  await restJson(url, '/wallet/link', { nonceId, proof }, bearer(kept.token))
  const { address } = lost
  await restJson(url, '/wallet/unlink', { adapterId: 'nimiq', address }, bearer(kept.token))
  const order = await waitingOrder(url, wallet)
  const asked = await request(app.config, { scope: 'openid profile' })
  const code = (await app.browser.open(asked.address)).address
  const store = await openBare(from)
  for (const kind of leftOut) await store.create(`${kind}:planted`, 'planted', 'forever')
  await store.create('used-nonce:planted', '', { ttlMs: 3_600_000 })

  const copies = [
    (to: string) => copyFirst(url, from, to, secretFile),
    ...Array.from({ length: 5 }, () => async (to: string) => {
      await running.service.close(0)
      return await copyAtOnce(from, to, { secrets: [readFileSync(secretFile, 'utf8').trim()] })
    }),
  ]
  const figures: Figures[] = []
  for (const [index, copy] of copies.entries()) {
    const to = stores[index] as string
    const [direction, startedAt] = [[from, to].map((store) => store.split(':')[0]).join(' to '), performance.now()]
    const counts = await copy(to)
    figures.push({ direction, counts, seconds: Math.round((performance.now() - startedAt) / 1000) })
    for (const kind of ['user', 'wallet', 'session', 'computers', 'oidc:RefreshToken', 'oidc:Grant']) {
      const { from: here = 0, to: there = 0 } = counts[kind] ?? {}
      expect([kind, there]).toEqual([kind, here])
      expect(here).toBeGreaterThanOrEqual(/^(?:user|wallet|session)$/.test(kind) ? users : 1)
    }
    await running.service.close(0)
    expect(isDeepStrictEqual(await copiedIn(to), await copiedIn(from))).toBe(true)
    const dumped = await dumpStore(to)
    const kindsThere = new Set(dumped.map(({ key }) => /^(?:countersign:)?((?:oidc:)?[^:]*)/.exec(key)?.[1] ?? ''))
    expect(leftOut.filter((kind) => kindsThere.has(kind))).toEqual([])
    expect(dumped.filter(({ key }) => key.endsWith('used-nonce:planted'))).toHaveLength(1)

    const secret = readFileSync(secretFile, 'utf8').trim()
    await expect(startIssuer([shop], { ...options, store: from, secret })).rejects.toThrow(
      /was copied to another store/,
    )
    running = await startIssuer([shop], { ...options, store: to, secret })
    // The counts are those of all; 200 of them are used.
    const some = tokens.filter((_, place) => place % Math.ceil(users / 200) === 0)
    for (const token of some) expect((await rest(url, '/session', undefined, bearer(token))).status).toBe(200)
    expect((await restJson(url, '/sessions', undefined, bearer(first))).sessions).toHaveLength(1)
    expect((await rest(url, '/session', undefined, bearer(ended.token))).status).toBe(401)
    expect((await restJson(url, '/session', undefined, bearer(signedIn.token))).session.userId).toBe(
      signedIn.session.userId,
    )
    for (const proof of [nonce, spent]) {
      expect((await rest(url, '/wallet/verify', proof)).json.code).toBe('NONCE_NOT_FOUND')
    }
    expect((await rest(url, '/cross-device/approve', order.approval)).json.code).toBe('ORDER_NOT_FOUND')
    await expect(signIn(url, blocked)).rejects.toThrow(/LOGIN_REFUSED/)
    expect(await byComputer(true)).toBe(200)
    expect(await keys()).toEqual(before)
    expect(await refusalOf(asked.redeem(code))).toBe('invalid_grant')
    for (const { config, tokens } of [used, left]) {
      expect(await refusalOf(client.refreshTokenGrant(config, tokens.refresh_token ?? ''))).toBe('invalid_grant')
    }
    refresh = (await client.refreshTokenGrant(app.config, refresh)).refresh_token ?? ''
    // The user is not asked again.
    const again = await request(app.config, { scope: 'openid profile' })
    const opened = await app.browser.open(again.address)
    expect(contentOf(opened.text)).toEqual({})
    expect((await again.redeem(opened.address)).id_token).toBeDefined()
    from = to
  }
  await running.service.close(0)
  // The wallet that was unlinked is not its former user's again, nor that of its address: a user of its own.
  const secret = readFileSync(secretFile, 'utf8').trim()
  running = await startIssuer([shop], { ...options, store: from, secret })
  expect((await signIn(url, lost)).session.userId).not.toBe(kept.session.userId)
  for (const old of stores.slice(-4, -1)) {
    await running.service.close(0)
    expect((await runHere(runCommand, ['admin', 'copy', '--undo', '--from', old])).code).toBe(0)
    running = await startIssuer([shop], { ...options, store: old, secret })
    expect((await rest(url, '/session', undefined, bearer(first))).status).toBe(200)
  }
  return figures
}
