import { createServer } from 'node:http'
import { createAuthClient } from 'better-auth/client'
import { describe, expect, expectTypeOf, onTestFinished, test } from 'vitest'
import {
  CountersignClientError,
  crossDeviceClient,
  walletSignInClient,
} from '../../../src/browser/better-auth/index.ts'
import { type AuthServerOptions, startAuth } from '../../better-auth/support.ts'
import { makeComputer } from '../../support/computer.ts'
import { listen } from '../../support/listening.ts'
import { memoryStore } from '../../support/memory-store.ts'
import { makeWallet } from '../../support/wallet.ts'
import { fetchFrom, MapStorage, pageWallet } from '../client/support.ts'

/** A page of the server's own origin with Better Auth's client and the plugins. */
async function openPage(url: string, options: { autoPersistToken?: boolean; origin?: string } = {}) {
  const storage = new MapStorage()
  const wallet = makeWallet()
  const both = { storage, tokenStorageKey: 'token', wallet: pageWallet(wallet), ...options }
  const client = createAuthClient({
    baseURL: url,
    plugins: [walletSignInClient({ ...both, appName: 'App' }), crossDeviceClient(both)],
    fetchOptions: { customFetchImpl: trackedFetch(options.origin ?? url) },
  })
  return { client, storage, wallet }
}

/**
 * `fetch` in a page. Better Auth's client reads its session anew by itself; a test does not end before that is over.
 */
function trackedFetch(origin: string): never {
  const running = new Set<Promise<unknown>>()
  const fetch = fetchFrom(origin)
  onTestFinished(async () => {
    do {
      await Promise.allSettled(running)
      await new Promise((resolve) => setTimeout(resolve, 30))
    } while (running.size > 0)
  })
  const tracked: typeof fetch = (input, init) => {
    const request = fetch(input, init)
    running.add(request)
    request.catch(() => {}).finally(() => running.delete(request))
    return request
  }
  return tracked as never
}

async function start(options: AuthServerOptions = {}) {
  const { url, auth } = await startAuth(options)
  return { url, auth, ...(await openPage(url)) }
}

async function codeOf(call: Promise<unknown>): Promise<string | undefined> {
  try {
    await call
  } catch (error) {
    if (error instanceof CountersignClientError) return error.code
    throw error
  }
}

describe('walletSignInClient', () => {
  test('signs in, keeps the token, and sends it along from then on', async () => {
    const { client, storage, wallet } = await start()
    const result = await client.signInWallet({ requestAddressBeforeVerify: true })
    expect(result).toMatchObject({ ok: true, session: { publicKeyHex: wallet.publicKeyHex, address: wallet.address } })
    expect(client.readStoredToken()).toBe(result.token)
    expect(storage.entries.get('token')).toBe(result.token)
    const { data } = await client.getSession()
    expect(data?.user.id).toBe(result.session.userId)
    expect(data?.session.walletAddress).toBe(wallet.address)
    expectTypeOf(data!.session.walletAddress).toEqualTypeOf<string | null | undefined>()
    await client.signOut()
    expect(client.readStoredToken()).toBeUndefined()
  })

  test('without autoPersistToken nothing is kept', async () => {
    const { url } = await startAuth()
    const { client, storage } = await openPage(url, { autoPersistToken: false })
    await client.signInWallet()
    expect(storage.entries.size).toBe(0)
  })

  test('a token whose session is over is dropped', async () => {
    const { client, auth } = await start()
    const { token } = await client.signInWallet()
    await auth.api.signOut({ headers: new Headers({ authorization: `Bearer ${token}` }) })
    expect((await client.getSession()).data).toBeNull()
    expect(client.readStoredToken()).toBeUndefined()
  })

  test('the token goes to the service’s own address only', async () => {
    const { client } = await start()
    await client.signInWallet()
    const elsewhere = createServer((request, response) => {
      response.end(JSON.stringify({ authorization: request.headers.authorization ?? null }))
    })
    expect((await client.$fetch(`http://127.0.0.1:${await listen(elsewhere)}/`)).data).toEqual({ authorization: null })
  })

  test('links another wallet', async () => {
    const { client, url } = await start()
    const first = await client.signInWallet()
    const second = makeWallet()
    const linked = await client.linkWallet({ wallet: pageWallet(second) })
    expect(linked).toMatchObject({ ok: true, adapterId: 'nimiq', publicKeyHex: second.publicKeyHex })
    const again = await (await openPage(url)).client.signInWallet({ wallet: pageWallet(second) })
    expect(again.session.userId).toBe(first.session.userId)
  })

  test('failures have the codes of the service and of the client', async () => {
    const { client, url } = await start()
    expect(await codeOf(client.signInWallet({ appName: 'Another' }))).toBe('APP_NAME_MISMATCH')
    const declined = { sign: () => Promise.reject(new Error('Request denied')) }
    expect(await codeOf(client.signInWallet({ wallet: declined }))).toBe('WALLET_DECLINED')
    const { client: foreign } = await openPage(url, { origin: 'https://evil.example' })
    expect(await codeOf(foreign.signInWallet())).toBe('ORIGIN_NOT_TRUSTED')
    const { client: lost } = await openPage('http://127.0.0.1:1')
    expect(await codeOf(lost.signInWallet())).toBe('NETWORK')
    expect(await codeOf(client.signInWallet({ signal: AbortSignal.abort() }))).toBe('ABORTED')
  })

  test('signIn.wallet answers with data or an error, as Better Auth’s own calls do', async () => {
    const { client, url, wallet } = await start()
    const { data, error } = await client.signIn.wallet()
    expect(error).toBeNull()
    expect(data).toMatchObject({ ok: true, session: { address: wallet.address } })
    expect(client.readStoredToken()).toBe(data?.token)
    const refused = await client.signIn.wallet({ appName: 'Another' })
    expect(refused).toMatchObject({ data: null, error: { code: 'APP_NAME_MISMATCH', status: 400 } })
    expect(refused.error?.message).toMatch(/Another|App/)
    expect(refused.error?.statusText).toBe('Bad Request')
    const declined = { sign: () => Promise.reject(new Error('Request denied')) }
    expect(await client.signIn.wallet({ wallet: declined })).toMatchObject({
      data: null,
      error: { code: 'WALLET_DECLINED', status: 0, statusText: '' },
    })
    const { client: lost } = await openPage('http://127.0.0.1:1')
    expect(await lost.signIn.wallet()).toMatchObject({ data: null, error: { code: 'NETWORK', status: 0 } })
    // Better Auth's own ways to sign in are still there.
    const own = await (await openPage(url)).client.signIn.email({ email: 'a@example.com', password: 'long enough' })
    expect(own.error?.status).toBeGreaterThanOrEqual(400)
  })

  test('the session that the page shows follows a sign-in, whichever call made it', async () => {
    const { url } = await startAuth()
    const ways: Record<string, (page: Awaited<ReturnType<typeof openPage>>) => Promise<unknown>> = {
      'signIn.wallet': ({ client }) => client.signIn.wallet(),
      signInWallet: ({ client }) => client.signInWallet(),
      'the path': async ({ client, wallet, storage }) => {
        const { data } = await client.wallet.nonce({})
        const proof = { publicKeyHex: wallet.publicKeyHex, signatureHex: wallet.sign(data!.message) }
        const verified = await client.wallet.verify({ nonceId: data!.nonceId, ...proof })
        expect(verified.error).toBeNull()
        // There is no cookie here.
        storage.setItem('token', verified.data!.token)
      },
    }
    for (const [name, signIn] of Object.entries(ways)) {
      const page = await openPage(url)
      const { useSession } = page.client
      onTestFinished(useSession.listen(() => {}))
      expect(useSession.get().data, name).toBeNull()
      await signIn(page)
      await expect.poll(() => useSession.get().data?.session.walletAddress, { message: name }).toBe(page.wallet.address)
    }
  })

  test('an application that has its calls throw gets the same codes', async () => {
    const { url } = await startAuth()
    const client = createAuthClient({
      baseURL: url,
      plugins: [walletSignInClient({ storage: new MapStorage(), wallet: pageWallet(makeWallet()) })],
      fetchOptions: { customFetchImpl: trackedFetch(url), throw: true },
    })
    expect((await client.signIn.wallet()).data).toMatchObject({ ok: true })
    expect(await codeOf(client.signInWallet({ appName: 'Another' }))).toBe('APP_NAME_MISMATCH')
  })

  test('the endpoints are typed for Better Auth’s own calls, too', async () => {
    const { client } = await start()
    const { data } = await client.wallet.nonce({ appName: 'App' })
    expectTypeOf(data!.nonceId).toEqualTypeOf<string>()
    expect(data?.message).toMatch(/^App requests authentication\n/)
    const { error } = await client.wallet.verify({ nonceId: 'x', publicKeyHex: '0', signatureHex: '0' })
    expect(error).toMatchObject({ status: 400, code: 'INVALID_REQUEST' })
  })

  test('the prefix is the server’s', async () => {
    const { url } = await startAuth({ wallet: { endpointPrefix: '/nimiq' } })
    const storage = new MapStorage()
    const client = createAuthClient({
      baseURL: url,
      plugins: [walletSignInClient({ endpointPrefix: '/nimiq', storage, wallet: pageWallet(makeWallet()) })],
      fetchOptions: { customFetchImpl: trackedFetch(url) },
    })
    expect(await client.signInWallet()).toMatchObject({ ok: true })
  })
})

describe('crossDeviceClient', () => {
  test('a desktop and a phone carry an order through, watched', async () => {
    const { url } = await startAuth()
    const { client: desktop, storage } = await openPage(url)
    const { client: phone, wallet } = await openPage(url)
    const order = await desktop.startOrder({ kind: 'login', displayTitle: 'Sign in on the desktop' })
    const seen: string[] = []
    for await (const { status } of desktop.watchOrder(order)) {
      seen.push(status)
      if (status === 'created') {
        const claimed = await phone.claimOrder(order.claimUrl)
        const challenge = await phone.getOrderChallenge(claimed)
        expect(challenge.displayTitle).toBe('Sign in on the desktop')
        await phone.approveOrder(claimed, { challenge })
      }
      if (status === 'approved') break
    }
    expect(seen).toEqual(['created', 'claimed', 'waiting_user', 'approved'])
    const finalized = await desktop.finalizeOrder(order)
    expect(finalized).toMatchObject({ kind: 'login', session: { address: wallet.address } })
    expect(storage.entries.get('token')).toBe(finalized.kind === 'login' && finalized.token)
    const { data } = await desktop.getSession()
    expect(data?.session.walletOrderId).toBe(order.orderId)
  })

  test('the desktop asks for the code that the phone shows, and a known computer does not', async () => {
    const store = await memoryStore()
    const { url } = await startAuth({ orders: { confirmationCode: 'return', store } })
    const { client: desktop } = await openPage(url)
    const { client: phone } = await openPage(url)
    const computer = await makeComputer()
    /** Starts an order and approves it. */
    const approve = async (remember: boolean) => {
      const order = await desktop.startOrder({ kind: 'login', computerKey: computer.key })
      const claimed = await phone.claimOrder(order.claimUrl)
      const challenge = await phone.getOrderChallenge(claimed)
      const approved = await phone.approveOrder(claimed, { challenge, rememberComputer: remember })
      for await (const { status, returnCodeRequired } of desktop.watchOrder(order)) {
        if (status === 'approved') return { order, claimed, ...approved, returnCodeRequired }
      }
      throw new Error('the order was not approved')
    }
    const first = await approve(true)
    expect(first.returnCodeRequired).toBe(true)
    const computerProof = await computer.prove(first.order)
    expect(await codeOf(desktop.finalizeOrder(first.order, { computerProof }))).toBe('RETURN_CODE_REQUIRED')
    const { returnCode } = first
    expect(await desktop.finalizeOrder(first.order, { returnCode, computerProof })).toMatchObject({ kind: 'login' })
    const [known] = await desktop.listKnownComputers()
    expect(known).toMatchObject({ current: true })

    const second = await approve(false)
    expect([second.returnCode, second.returnCodeRequired ?? false]).toEqual([undefined, false])
    await desktop.finalizeOrder(second.order, { computerProof: await computer.prove(second.order) })
    expect(await phone.rejectOrder(second.claimed)).toMatchObject({ status: 'finalized', sessionEnded: true })
    expect(await codeOf(desktop.listKnownComputers())).toBe('SESSION_INVALID')
    // The take-back has forgotten it.
    expect((await approve(false)).returnCode).toMatch(/^\d{6}$/)
  })

  test('a known computer is forgotten by its identifier', async () => {
    const store = await memoryStore()
    const { url } = await startAuth({ orders: { store } })
    const { client } = await openPage(url)
    await client.signInWallet()
    expect(await client.listKnownComputers()).toEqual([])
    expect(await codeOf(client.forgetKnownComputer('x'))).toBe('COMPUTER_NOT_FOUND')
  })

  test('an order goes on in another browser', async () => {
    const { url } = await startAuth()
    const { client: desktop } = await openPage(url)
    const { client: phone } = await openPage(url)
    const { client: walletBrowser } = await openPage(url)
    const order = await desktop.startOrder({ kind: 'login' })
    const claimed = await phone.claimOrder(order.claimUrl)
    const { ticket } = await phone.handOverOrder(claimed)
    const redeemed = await walletBrowser.redeemHandOver(ticket)
    const challenge = await walletBrowser.getOrderChallenge(redeemed)
    expect(await walletBrowser.approveOrder(redeemed, { challenge })).toMatchObject({ status: 'approved' })
    expect(await codeOf(phone.getOrderChallenge(claimed))).toBe('ORDER_TOKEN_INVALID')
  })

  test('rejecting and cancelling reach the watcher, and the watch ends', async () => {
    const { url } = await startAuth()
    const { client: desktop } = await openPage(url)
    const { client: phone } = await openPage(url)
    const rejected = await desktop.startOrder({ kind: 'sign', payloadHash: 'x' })
    const claimed = await phone.claimOrder(rejected.claimUrl)
    await phone.rejectOrder(claimed)
    const cancelled = await desktop.startOrder({ kind: 'login' })
    await desktop.cancelOrder(cancelled)
    for (const [order, end] of [
      [rejected, 'rejected'],
      [cancelled, 'cancelled'],
    ] as const) {
      const statuses = []
      for await (const { status } of desktop.watchOrder(order, { afterSequence: 1 })) statuses.push(status)
      expect(statuses.at(-1)).toBe(end)
    }
    expect(await codeOf(desktop.finalizeOrder(rejected))).toBe('ORDER_REJECTED')
  })

  test('a call that is not answered in time is one that got no answer, and one that was aborted is aborted', async () => {
    const client = createAuthClient({
      baseURL: `http://127.0.0.1:${await listen(createServer(() => {}))}`,
      plugins: [crossDeviceClient({ timeoutMs: 200 })],
    })
    expect(await codeOf(client.startOrder({ kind: 'login' }))).toBe('NETWORK')
    const signal = AbortSignal.timeout(50)
    expect(await codeOf(client.startOrder({ kind: 'login', signal }))).toBe('ABORTED')
  })

  test('a call that Better Auth’s rate limiter refuses is made again when it says, and the page hears of both', async () => {
    const rule = { window: 3, max: 1 }
    const rateLimit = { enabled: true, storage: 'memory' as const, customRules: { '/cross-device/cancel': rule } }
    const ipAddress = { ipAddressHeaders: ['x-client'] }
    const { url } = await startAuth({ auth: { rateLimit, advanced: { ipAddress } } })
    const statuses: number[] = []
    const client = createAuthClient({
      baseURL: url,
      plugins: [crossDeviceClient({ storage: new MapStorage() })],
      fetchOptions: {
        customFetchImpl: trackedFetch(url),
        headers: { 'x-client': '203.0.113.9' },
        onError: ({ response }) => void statuses.push(response.status),
      },
    })
    const order = await client.startOrder({ kind: 'login' })
    expect(await codeOf(client.cancelOrder({ ...order, desktopToken: order.claimToken }))).toBe('ORDER_TOKEN_INVALID')
    const askedAt = performance.now()
    expect((await client.cancelOrder(order)).status).toBe('cancelled')
    expect(performance.now() - askedAt).toBeGreaterThan(1_000)
    expect(statuses).toEqual([401, 429])
  })

  test('a watch that may not be ends with its reason', async () => {
    const { client } = await start()
    const order = await client.startOrder({ kind: 'login' })
    const watch = client.watchOrder({ ...order, desktopToken: order.claimToken })
    expect(await codeOf(watch.next())).toBe('ORDER_TOKEN_INVALID')
  })
})
