import { describe, expect, test } from 'vitest'
import { Signer } from '../core/order/support.ts'
import {
  appOrigin,
  type CallName,
  type ContractDriver,
  EventsRefused,
  otherOrigin,
  type StartDriver,
} from './driver.ts'
import { advance, bearerOf, cookieOf, type Going, ok, refusal, untilApproved, untilWaiting } from './support.ts'

/** What cross-device orders promise. */
export function orderTests(start: StartDriver): void {
  test('a login order becomes a session', async () => {
    const driver = await start()
    const signer = new Signer()
    const { json: started } = await ok(driver.call('startOrder', { kind: 'login', returnTo: '/welcome?a=1#b' }))
    expect(started).toEqual({
      orderId: expect.stringMatching(/^[A-Za-z0-9_-]{22}$/),
      claimUrl: `${driver.approvalPage}/${started.orderId}#token=${started.claimToken}`,
      claimToken: expect.stringMatching(/^csc_[A-Za-z0-9_-]{43}$/),
      desktopToken: expect.stringMatching(/^csd_[A-Za-z0-9_-]{43}$/),
      kind: 'login',
      status: 'created',
      expiresAt: expect.any(Number),
      confirmationCode: expect.stringMatching(/^\d\d$/),
    })
    const { orderId, claimToken, desktopToken, confirmationCode } = started
    const { json: preview } = await ok(driver.call('previewOrder', { orderId, claimToken }))
    expect(preview).toMatchObject({ kind: 'login', origin: appOrigin, confirmationCode, startedWithKey: false })
    expect(preview.expiresAt).toBe(started.expiresAt)
    const { json: claimed } = await ok(driver.call('claimOrder', { orderId, claimToken }))
    expect(claimed).toEqual({
      ok: true,
      orderId,
      status: 'claimed',
      challengeToken: expect.stringMatching(/^csp_[A-Za-z0-9_-]{43}$/),
    })
    const phone = { orderId, challengeToken: claimed.challengeToken }
    const { json: challenge } = await ok(driver.call('getOrderChallenge', phone))
    expect(challenge).toMatchObject({
      action: 'auth.login',
      origin: appOrigin,
      kind: 'login',
      status: 'waiting_user',
      confirmationCode,
      requester: { origin: appOrigin },
      expiresAt: started.expiresAt,
    })
    expect(challenge.message).toBe(
      [
        'App requests approval',
        'Action: auth.login',
        `Origin: ${appOrigin}`,
        `Challenge ID: ${challenge.challengeId}`,
        `Nonce: ${challenge.nonce}`,
        `Issued At: ${new Date(challenge.issuedAt).toISOString()}`,
        `Expires At: ${new Date(challenge.expiresAt).toISOString()}`,
        `Order ID: ${orderId}`,
        'Kind: login',
        `Code: ${confirmationCode}`,
      ].join('\n'),
    )
    const proof = signer.prove(challenge.message)
    const { json: approved } = await ok(driver.call('approveOrder', { ...phone, proof }))
    expect(approved).toEqual({ ok: true, orderId, status: 'approved', finishBy: expect.any(Number) })
    const finalized = await ok(driver.call('finalizeOrder', { orderId, desktopToken }))
    expect(finalized.json).toMatchObject({
      ok: true,
      orderId,
      status: 'finalized',
      kind: 'login',
      redirectTo: '/welcome?a=1#b',
      session: { adapterId: 'ed25519', publicKeyHex: signer.publicKeyHex, orderId, current: true },
    })
    expect(finalized.headers.get('set-auth-token')).toBe(finalized.json.token)
    const { userId } = finalized.json.session
    expect(await driver.session(bearerOf(finalized))).toMatchObject({ userId })
    expect(await driver.session(cookieOf(finalized))).toMatchObject({ userId })
  })

  test('a sign order becomes a proof, and no session', async () => {
    const driver = await start()
    const signer = new Signer()
    const input = { kind: 'sign', displayTitle: 'Pay', displaySummary: 'Three apples', payloadHash: 'sha256:00ff' }
    const order = await untilApproved(driver, input, signer)
    expect(order.challenge).toMatchObject({ action: 'order.approve', ...input })
    expect(order.challenge.message).toContain('\nPayload Hash: sha256:00ff\nTitle: Pay\nSummary: Three apples')
    const finalized = await ok(driver.call('finalizeOrder', order.desktop))
    expect(finalized.json).toEqual({
      ok: true,
      orderId: order.desktop.orderId,
      status: 'finalized',
      kind: 'sign',
      redirectTo: '/',
      proofArtifact: {
        ...order.proof,
        address: expect.stringMatching(/^NQ\d\d /),
        message: order.challenge.message,
        payloadHash: 'sha256:00ff',
        adapterId: 'ed25519',
      },
    })
    expect(finalized.headers.getSetCookie()).toEqual([])
    expect(finalized.headers.get('set-auth-token')).toBeNull()
  })

  test('each token grants its own uses and no other', async () => {
    const driver = await start()
    const { desktop, phone, claim, proof } = await untilWaiting(driver)
    const { orderId } = desktop
    const uses: [CallName, string, string, object][] = [
      ['claimOrder', 'claimToken', claim.claimToken, {}],
      ['getOrderChallenge', 'challengeToken', phone.challengeToken, {}],
      ['approveOrder', 'challengeToken', phone.challengeToken, { proof }],
      ['rejectOrder', 'challengeToken', phone.challengeToken, {}],
      ['cancelOrder', 'desktopToken', desktop.desktopToken, {}],
      ['finalizeOrder', 'desktopToken', desktop.desktopToken, {}],
    ]
    const tokens = new Set(uses.map(([, , token]) => token))
    for (const [name, field, right, more] of uses) {
      for (const token of [...tokens, 'x'.repeat(47)]) {
        if (token === right) continue
        expect(await refusal(driver.call(name, { orderId, [field]: token, ...more }))).toBe('ORDER_TOKEN_INVALID')
      }
      expect(await refusal(driver.call(name, { orderId: 'nobody', [field]: right, ...more }))).toBe('ORDER_NOT_FOUND')
    }
  })

  test('what comes too early or too late is refused for what it is', async () => {
    const driver = await start()
    const { json: started } = await ok(driver.call('startOrder', { kind: 'login' }))
    const { orderId, claimToken, desktopToken } = started
    const claim = { orderId, claimToken }
    const desktop = { orderId, desktopToken }
    expect(await refusal(driver.call('finalizeOrder', desktop))).toBe('ORDER_NOT_APPROVED')
    const claimKey = 'k'.repeat(43)
    const { json: claimed } = await ok(driver.call('claimOrder', { ...claim, claimKey }))
    const { json: retried } = await ok(driver.call('claimOrder', { ...claim, claimKey }))
    expect(retried).toEqual(claimed)
    expect(await refusal(driver.call('claimOrder', claim))).toBe('ORDER_ALREADY_CLAIMED')
    const phone = { orderId, challengeToken: claimed.challengeToken }
    const early = { ...phone, proof: new Signer().prove('x') }
    expect(await refusal(driver.call('approveOrder', early))).toBe('ORDER_CHALLENGE_NOT_READ')
    const { json: challenge } = await ok(driver.call('getOrderChallenge', phone))
    const proof = new Signer().prove(challenge.message)
    const forged = { ...proof, signatureHex: new Signer().prove(challenge.message).signatureHex }
    expect(await refusal(driver.call('approveOrder', { ...phone, proof: forged }))).toBe('SIGNATURE_INVALID')
    await ok(driver.call('approveOrder', { ...phone, proof }))
    await ok(driver.call('approveOrder', { ...phone, proof }))
    await ok(driver.call('finalizeOrder', desktop))
    expect(await refusal(driver.call('cancelOrder', desktop))).toBe('ORDER_FINALIZED')
  })

  test('rejecting and cancelling end an order, and the other side learns why', async () => {
    const driver = await start()
    const rejected = await untilWaiting(driver)
    expect((await ok(driver.call('rejectOrder', rejected.phone))).json).toMatchObject({ status: 'rejected' })
    expect(await refusal(driver.call('finalizeOrder', rejected.desktop))).toBe('ORDER_REJECTED')
    const cancelled = await untilApproved(driver)
    expect((await ok(driver.call('cancelOrder', cancelled.desktop))).json).toMatchObject({ status: 'cancelled' })
    expect(await refusal(driver.call('finalizeOrder', cancelled.desktop))).toBe('ORDER_CANCELLED')
    expect(await refusal(driver.call('getOrderChallenge', cancelled.phone))).toBe('ORDER_CANCELLED')
  })

  test('an order expires, an approved one has a minute left, and ten minutes later it is forgotten', async () => {
    const driver = await start({ orderTtlSeconds: 30 })
    const { json: unused } = await ok(driver.call('startOrder', { kind: 'login' }))
    const { orderId, claimToken } = unused
    const order = await untilWaiting(driver)
    advance(29_000)
    const { json: approved } = await ok(driver.call('approveOrder', { ...order.phone, proof: order.proof }))
    const longer = approved.finishBy - order.challenge.expiresAt
    expect([longer >= 59_000, longer < 60_000]).toEqual([true, true])
    const { json: challenge } = await ok(driver.call('getOrderChallenge', order.phone))
    expect(challenge.finishBy).toBe(approved.finishBy)
    advance(1_100)
    expect(await refusal(driver.call('claimOrder', { orderId, claimToken }))).toBe('ORDER_EXPIRED')
    advance(50_000)
    await ok(driver.call('finalizeOrder', order.desktop))
    advance(600_000)
    expect(await refusal(driver.call('claimOrder', { orderId, claimToken }))).toBe('ORDER_NOT_FOUND')
  })

  test('only trusted origins start, and only the order’s own or the service’s go on', async () => {
    const driver = await start()
    expect(await refusal(driver.call('startOrder', { kind: 'login' }, 'https://evil.example'))).toBe(
      'ORIGIN_NOT_TRUSTED',
    )
    const { json } = await ok(driver.call('startOrder', { kind: 'login' }))
    const claim = { orderId: json.orderId, claimToken: json.claimToken }
    expect(await refusal(driver.call('claimOrder', claim, otherOrigin))).toBe('ORIGIN_MISMATCH')
    await ok(driver.call('claimOrder', claim, driver.ownOrigin))
  })

  test.each([
    ['no kind', {}],
    ['another kind', { kind: 'other' }],
    ['a title of two lines', { kind: 'login', displayTitle: 'a\nKind: sign' }],
    ['a path that is an address', { kind: 'login', returnTo: '//evil.example' }],
    ['a title that is too long', { kind: 'login', displayTitle: 'x'.repeat(121) }],
  ])('an order with %s is not started', async (_name, input) => {
    const driver = await start()
    expect(await refusal(driver.call('startOrder', input))).toBe('INVALID_REQUEST')
  })

  test('the same key under another adapter is another user', async () => {
    const driver = await start()
    const signer = new Signer()
    const finalized = async (prove: (message: string) => object) => {
      const { phone, desktop, challenge } = await untilWaiting(driver)
      await ok(driver.call('approveOrder', { ...phone, proof: prove(challenge.message) }))
      return (await ok(driver.call('finalizeOrder', desktop))).json.session
    }
    const asIs = await finalized((message) => signer.prove(message))
    const asNimiq = await finalized((message) => signer.proveAsNimiq(message))
    expect([asIs.adapterId, asNimiq.adapterId]).toEqual(['ed25519', 'nimiq'])
    expect(asNimiq.publicKeyHex).toBe(asIs.publicKeyHex)
    expect(asNimiq.userId).not.toBe(asIs.userId)
  })

  test('an order for an adapter that is not configured is not started', async () => {
    const driver = await start({ adapters: ['ed25519'] })
    expect(await refusal(driver.call('startOrder', { kind: 'login', adapterId: 'nimiq' }))).toBe('ADAPTER_UNKNOWN')
  })

  describe('races', () => {
    test('of 20 claims at once, one wins', async () => {
      const driver = await start()
      const { json } = await ok(driver.call('startOrder', { kind: 'login' }))
      const claim = { orderId: json.orderId, claimToken: json.claimToken }
      const outcomes = await Promise.all(Array.from({ length: 20 }, () => driver.call('claimOrder', claim)))
      expect(outcomes.filter(({ reason }) => reason === undefined)).toHaveLength(1)
      expect(new Set(outcomes.map(({ reason }) => reason))).toEqual(new Set([undefined, 'ORDER_ALREADY_CLAIMED']))
    })

    test('approve against reject against cancel: one verdict, and all tell the same', async () => {
      const driver = await start()
      for (let round = 0; round < 5; round++) {
        const order = await untilWaiting(driver)
        await Promise.all([
          driver.call('approveOrder', { ...order.phone, proof: order.proof }),
          driver.call('rejectOrder', order.phone),
          driver.call('cancelOrder', order.desktop),
          driver.call('finalizeOrder', order.desktop),
        ])
        const statuses = (await eventsOf(driver, order, 0)).map(({ status }) => status)
        // Approved or not, and one end for all. The phone can reject what it has approved.
        expect(statuses.slice(0, 3)).toEqual(['created', 'claimed', 'waiting_user'])
        expect([
          ['approved', 'cancelled'],
          ['approved', 'finalized'],
          ['approved', 'rejected'],
          ['rejected'],
          ['cancelled'],
        ]).toContainEqual(statuses.slice(3))
      }
    })

    test('20 finalizes at once hand out one session', async () => {
      const driver = await start()
      const order = await untilApproved(driver)
      const outcomes = await Promise.all(
        Array.from({ length: 20 }, () => ok(driver.call('finalizeOrder', order.desktop))),
      )
      expect(new Set(outcomes.map(({ json }) => json.token)).size).toBe(1)
      expect(new Set(outcomes.map(({ json }) => json.session.id)).size).toBe(1)
      expect(await driver.sessions(bearerOf(outcomes[0]!))).toHaveLength(1)
    })
  })

  test('a finalize made again gets the same session, until that one was ended', async () => {
    const driver = await start()
    const order = await untilApproved(driver)
    const first = await ok(driver.call('finalizeOrder', order.desktop))
    const again = await ok(driver.call('finalizeOrder', order.desktop))
    expect(again.json).toEqual(first.json)
    await driver.signOut(bearerOf(again))
    expect(await refusal(driver.call('finalizeOrder', order.desktop))).toBe('ORDER_FINALIZED')
    expect(await driver.session(bearerOf(first))).toBeUndefined()
  })

  test('a wallet that may not sign in leaves the order approved', async () => {
    const driver = await start({ resolveLogin: () => null })
    const order = await untilApproved(driver)
    expect(await refusal(driver.call('finalizeOrder', order.desktop))).toBe('LOGIN_REFUSED')
    for await (const { status } of driver.watch(order.desktop, AbortSignal.timeout(5_000))) {
      expect(status).toBe('approved')
      break
    }
  })

  describe('events', () => {
    test('a watcher sees every step, once and in order, as it happens', async () => {
      const driver = await start()
      const { json: started } = await ok(driver.call('startOrder', { kind: 'login', returnTo: '/in' }))
      const { orderId, claimToken, desktopToken } = started
      const desktop = { orderId, desktopToken }
      const signer = new Signer()
      const seen: object[] = []
      const steps: Record<string, () => Promise<unknown>> = {
        created: () => driver.call('claimOrder', { orderId, claimToken, claimKey: 'k'.repeat(43) }),
        claimed: async () => {
          const { json } = await ok(driver.call('claimOrder', { orderId, claimToken, claimKey: 'k'.repeat(43) }))
          const phone = { orderId, challengeToken: json.challengeToken }
          const { json: challenge } = await ok(driver.call('getOrderChallenge', phone))
          await ok(driver.call('approveOrder', { ...phone, proof: signer.prove(challenge.message) }))
        },
        approved: () => ok(driver.call('finalizeOrder', desktop)),
      }
      for await (const event of driver.watch(desktop, AbortSignal.timeout(10_000))) {
        if (event.heartbeat) continue
        seen.push(event)
        await steps[event.status]?.()
      }
      const common = {
        kind: 'login',
        at: expect.any(Number),
        heartbeat: false,
        reconnect: false,
        returnCodeRequired: false,
      }
      expect(seen).toEqual([
        { sequence: 1, status: 'created', ...common },
        { sequence: 2, status: 'claimed', ...common },
        { sequence: 3, status: 'waiting_user', ...common },
        { sequence: 4, status: 'approved', redirectTo: '/in', finishBy: expect.any(Number), ...common },
        { sequence: 5, status: 'finalized', redirectTo: '/in', ...common },
      ])
    })

    test('a watcher that comes back misses nothing, and hears nothing twice', async () => {
      const driver = await start()
      const order = await untilWaiting(driver)
      await ok(driver.call('rejectOrder', order.phone))
      const sequencesAfter = async (afterSequence?: number) =>
        (await eventsOf(driver, order, afterSequence)).map(({ sequence }) => sequence)
      expect(await sequencesAfter()).toEqual([4])
      expect(await sequencesAfter(1)).toEqual([2, 3, 4])
      expect(await sequencesAfter(3)).toEqual([4])
      expect(await sequencesAfter(4)).toEqual([])
    })

    test('the phone’s tokens do not watch', async () => {
      const driver = await start()
      const order = await untilWaiting(driver)
      const watch = async (input: object) => {
        try {
          for await (const _ of driver.watch(input, AbortSignal.timeout(5_000))) return undefined
        } catch (error) {
          if (error instanceof EventsRefused) return error.reason
          throw error
        }
      }
      const { orderId, challengeToken } = order.phone
      expect(await watch({ orderId, desktopToken: challengeToken })).toBe('ORDER_TOKEN_INVALID')
      expect(await watch({ orderId: 'nobody', desktopToken: challengeToken })).toBe('ORDER_NOT_FOUND')
    })
  })
}

/** The events of an order that is over. */
// biome-ignore lint/suspicious/noExplicitAny: tests look at fields that they name.
async function eventsOf(driver: ContractDriver, order: Going, afterSequence?: number): Promise<any[]> {
  const events = []
  const input = { ...order.desktop, ...(afterSequence === undefined ? {} : { afterSequence }) }
  for await (const event of driver.watch(input, AbortSignal.timeout(10_000))) events.push(event)
  return events
}
