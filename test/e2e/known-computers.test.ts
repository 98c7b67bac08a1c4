import { toJson } from '@bufbuild/protobuf'
import { createClient } from '@connectrpc/connect'
import { createConnectTransport } from '@connectrpc/connect-web'
import { describe, expect, onTestFinished, test } from 'vitest'
import { IntrospectSessionResponseSchema, SessionService } from '../../gen/server/countersign/v1/session_service_pb.ts'
import type { CountersignOptions } from '../../src/service/config.ts'
import { openOnOurClock } from '../core/order/support.ts'
import { makeComputer, type TestComputer } from '../support/computer.ts'
import { approveOrder } from '../support/flows.ts'
import { bearer, okay, type RestAnswer, rest } from '../support/rest.ts'
import { reasonOf } from '../support/rpc-answer.ts'
import { startService } from '../support/service.ts'
import { temporaryStore } from '../support/temporary-folder.ts'
import { makeWallet, type TestWallet } from '../support/wallet.ts'

const app = { origin: 'https://app.example' }

/** Starts an instance, and resolves with its address. */
async function startOn(storeUrl: string, options: CountersignOptions = {}): Promise<string> {
  const store = await openOnOurClock(storeUrl)
  onTestFinished(() => store.close())
  const { url } = await startService({
    store,
    secret: 'a secret for tests and for nothing else',
    trustedOrigins: [app.origin],
    confirmationCode: 'return',
    ...options,
  })
  return url
}

/** Starts an order on one instance and approves it on another. `returnCode` is absent if the order needs none. */
async function approve(
  [here, there]: readonly [string, string],
  wallet: TestWallet,
  { key: computerKey }: TestComputer,
  rememberComputer?: boolean,
) {
  const started = okay(await rest(here, '/cross-device/start', { kind: 'login', computerKey }, app))
  return { ...started, ...(await approveOrder(there, started, { wallet, headers: app, rememberComputer })) }
}

/** Finalizes an order, with the code that its user types and the computer's proof. */
async function finalize(
  url: string,
  { orderId, desktopToken, returnCode }: { orderId: string; desktopToken: string; returnCode?: string },
  computer: TestComputer,
  headers: Record<string, string> = app,
): Promise<RestAnswer> {
  const computerProof = await computer.prove({ orderId, desktopToken })
  return await rest(url, '/cross-device/finalize', { orderId, desktopToken, returnCode, computerProof }, headers)
}

/** Signs in with a return code that makes the computer known. Resolves with the session's token. */
async function signInRemembered(
  urls: readonly [string, string],
  wallet: TestWallet,
  computer: TestComputer,
  agent = 'Browser/1.0',
): Promise<{ token: string; session: { id: string } }> {
  const order = await approve(urls, wallet, computer, true)
  expect(order.returnCode).toMatch(/^\d{6}$/)
  return okay(await finalize(urls[0], order, computer, { ...app, 'user-agent': agent }))
}

/** Whether an order from the computer needs a return code. What it needs, or nothing, finalizes it. */
async function needsCode(
  urls: readonly [string, string],
  wallet: TestWallet,
  computer: TestComputer,
): Promise<boolean> {
  const { returnCode, ...order } = await approve(urls, wallet, computer)
  const without = await finalize(urls[1], order, computer)
  if (returnCode === undefined) {
    okay(without)
    return false
  }
  expect([without.status, without.json.code]).toEqual([400, 'RETURN_CODE_REQUIRED'])
  okay(await finalize(urls[1], { ...order, returnCode }, computer))
  return true
}

/** The known computers that a session is shown. */
async function listOf(url: string, token: string): Promise<{ id: string; current: boolean; userAgent: string }[]> {
  return okay(await rest(url, '/computers', undefined, bearer(token))).computers
}

describe('over two instances', () => {
  const startTwo = async (): Promise<readonly [string, string]> => {
    const address = temporaryStore()
    return [await startOn(address), await startOn(address)]
  }
  const sessionsAt = (url: string) => createClient(SessionService, createConnectTransport({ baseUrl: url }))

  test('a user sees the computers of the wallet and forgets one', async () => {
    const urls = await startTwo()
    const wallet = makeWallet()
    const [desktop, laptop] = [await makeComputer(), await makeComputer()]
    const first = await signInRemembered(urls, wallet, desktop, 'Desktop/1.0')
    const second = await signInRemembered(urls, wallet, laptop, 'Laptop/1.0')
    const computers = await listOf(urls[1], first.token)
    expect(computers.map(({ userAgent, current }) => [userAgent, current])).toEqual([
      ['Laptop/1.0', false],
      ['Desktop/1.0', true],
    ])
    expect(computers[0]).toEqual({
      id: expect.stringMatching(/^[A-Za-z0-9_-]{22}$/),
      createdAt: expect.any(Number),
      lastUsedAt: expect.any(Number),
      ip: '127.0.0.1',
      userAgent: 'Laptop/1.0',
      current: false,
    })
    const client = sessionsAt(urls[0])
    const overRpc = await client.listKnownComputers({}, { headers: bearer(second.token) })
    expect(overRpc.computers.map(({ id, current }) => [id, current])).toEqual(
      computers.map(({ id, current }) => [id, !current]),
    )
    const [laptopId] = computers.map(({ id }) => id) as [string]

    // Another user's wallet neither sees nor forgets it.
    const stranger = await signInRemembered(urls, makeWallet(), desktop)
    expect(await listOf(urls[0], stranger.token)).toHaveLength(1)
    const foreign = await rest(urls[0], '/computers/forget', { id: laptopId }, bearer(stranger.token))
    expect([foreign.status, foreign.json.code]).toEqual([404, 'COMPUTER_NOT_FOUND'])
    expect(await needsCode(urls, wallet, laptop)).toBe(false)

    expect(okay(await rest(urls[0], '/computers/forget', { id: laptopId }, bearer(first.token)))).toEqual({ ok: true })
    const again = client.forgetKnownComputer({ id: laptopId }, { headers: bearer(first.token) })
    expect(await reasonOf(again)).toBe('COMPUTER_NOT_FOUND')
    expect(await needsCode(urls, wallet, laptop)).toBe(true)
    expect(await needsCode(urls, wallet, desktop)).toBe(false)
    // The sessions go on.
    okay(await rest(urls[1], '/session', undefined, bearer(second.token)))
  })

  test('a session that is revoked takes its computer with it, and no other', async () => {
    const urls = await startTwo()
    const wallet = makeWallet()
    const [desktop, laptop] = [await makeComputer(), await makeComputer()]
    const first = await signInRemembered(urls, wallet, desktop)
    await signInRemembered(urls, wallet, laptop)
    // A later session from the laptop, made without a code, stands for it as well.
    const order = await approve(urls, wallet, laptop)
    const later = okay(await finalize(urls[0], order, laptop))
    const client = sessionsAt(urls[1])
    await client.revokeSession({ sessionId: later.session.id }, { headers: bearer(first.token) })
    const retry = client.revokeSession({ sessionId: later.session.id }, { headers: bearer(first.token) })
    expect(await reasonOf(retry)).toBe('SESSION_NOT_FOUND')
    expect(await needsCode(urls, wallet, laptop)).toBe(true)
    expect(await needsCode(urls, wallet, desktop)).toBe(false)
  })

  test('ending all other sessions forgets all computers but the one at hand', async () => {
    const urls = await startTwo()
    const wallet = makeWallet()
    const [desktop, laptop, gone] = [await makeComputer(), await makeComputer(), await makeComputer()]
    const first = await signInRemembered(urls, wallet, desktop)
    await signInRemembered(urls, wallet, laptop)
    const { token } = await signInRemembered(urls, wallet, gone)
    okay(await rest(urls[0], '/sign-out', {}, bearer(token)))
    const stranger = { wallet: makeWallet(), computer: await makeComputer() }
    await signInRemembered(urls, stranger.wallet, stranger.computer)

    const revoked = await sessionsAt(urls[1]).revokeOtherSessions({}, { headers: bearer(first.token) })
    expect(revoked.revokedCount).toBe(1)
    expect((await listOf(urls[0], first.token)).map(({ current }) => current)).toEqual([true])
    expect(await needsCode(urls, wallet, desktop)).toBe(false)
    expect(await needsCode(urls, wallet, laptop)).toBe(true)
    expect(await needsCode(urls, wallet, gone)).toBe(true)
    expect(await needsCode(urls, stranger.wallet, stranger.computer)).toBe(false)
  })
})

test('with knownComputers off, no computer is remembered, and none that was is known', async () => {
  const address = temporaryStore()
  const on = await startOn(address)
  const [wallet, remembered, offered] = [makeWallet(), await makeComputer(), await makeComputer()]
  await signInRemembered([on, on], wallet, remembered)
  const off = await startOn(address, { knownComputers: false })
  expect(await needsCode([off, off], wallet, remembered)).toBe(true)
  const order = await approve([off, off], wallet, offered, true)
  expect(order.challenge.canRememberComputer).toBe(false)
  const { token } = okay(await finalize(off, order, offered))
  expect(await needsCode([on, on], wallet, offered)).toBe(true)
  expect(await needsCode([on, on], wallet, remembered)).toBe(false)
  // What was remembered before can still be seen and forgotten.
  const [known] = await listOf(off, token)
  okay(await rest(off, '/computers/forget', { id: known!.id }, bearer(token)))
  expect(await needsCode([on, on], wallet, remembered)).toBe(true)
})

test('known computers are told and forgotten by the session’s own token or cookie only, the cookie from a trusted origin', async () => {
  const url = await startOn(temporaryStore())
  const [wallet, computer] = [makeWallet(), await makeComputer()]
  const order = await approve([url, url], wallet, computer, true)
  const finalized = await finalize(url, order, computer)
  const [cookie] = finalized.headers.getSetCookie()[0]!.split(';') as [string]
  const calls: [string, (headers: Record<string, string>) => Promise<RestAnswer>][] = [
    ['/computers', (headers) => rest(url, '/computers', undefined, headers)],
    ['/computers/forget', (headers) => rest(url, '/computers/forget', { id: 'none' }, headers)],
  ]
  for (const [path, call] of calls) {
    const refusals: [Record<string, string>, number, string][] = [
      [{}, 401, 'SESSION_REQUIRED'],
      [bearer('nonsense'), 401, 'SESSION_INVALID'],
      [bearer(order.desktopToken), 401, 'SESSION_INVALID'],
      [{ cookie, origin: 'https://evil.example' }, 403, 'ORIGIN_NOT_TRUSTED'],
    ]
    for (const [headers, status, code] of refusals) {
      const answer = await call(headers)
      expect([answer.status, answer.json.code], `${path} ${code}`).toEqual([status, code])
    }
  }
  const own = { cookie, ...app }
  const [{ id }] = okay(await rest(url, '/computers', undefined, own)).computers
  okay(await rest(url, '/computers/forget', { id }, own))
})

test('no answer about a session names the computer that it came from', async () => {
  const url = await startOn(temporaryStore())
  const { token, session } = await signInRemembered([url, url], makeWallet(), await makeComputer())
  const [computer] = await listOf(url, token)
  expect(computer?.current).toBe(true)
  const client = createClient(SessionService, createConnectTransport({ baseUrl: url }))
  const told = [
    session,
    okay(await rest(url, '/session', undefined, bearer(token))),
    okay(await rest(url, '/sessions', undefined, bearer(token))),
    toJson(IntrospectSessionResponseSchema, await client.introspectSession({ token })),
  ]
  expect(JSON.stringify(told)).not.toContain(computer!.id)
})
