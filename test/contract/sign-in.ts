import { describe, expect, test } from 'vitest'
import { Signer } from '../core/order/support.ts'
import { makeWallet, proofOf } from '../support/wallet.ts'
import { appOrigin, otherOrigin, type StartDriver } from './driver.ts'
import { advance, bearerOf, cookieOf, ok, refusal, signIn } from './support.ts'

/** What direct sign-in promises. */
export function signInTests(start: StartDriver): void {
  test('the challenge has the fields and the text of the contract', async () => {
    const driver = await start({ nonceTtlSeconds: 77 })
    const { json } = await ok(driver.call('issueNonce', {}))
    expect(json).toEqual({
      action: 'auth.login',
      challengeId: 'login',
      nonceId: expect.stringMatching(/^[A-Za-z0-9_-]{38}$/),
      nonce: expect.stringMatching(/^[A-Za-z0-9_-]{43}$/),
      origin: appOrigin,
      issuedAt: expect.any(Number),
      expiresAt: json.issuedAt + 77_000,
      message: [
        'App requests authentication',
        'Action: auth.login',
        `Origin: ${appOrigin}`,
        'Challenge ID: login',
        `Nonce: ${json.nonce}`,
        `Issued At: ${new Date(json.issuedAt).toISOString()}`,
        `Expires At: ${new Date(json.expiresAt).toISOString()}`,
      ].join('\n'),
    })
  })

  test('a Nimiq wallet gets a session, by cookie and by bearer token', async () => {
    const driver = await start()
    const wallet = makeWallet()
    const { json: challenge } = await ok(driver.call('issueNonce', { appName: 'App' }))
    const signedIn = await ok(driver.call('verifySignIn', { ...proofOf(wallet, challenge), address: wallet.address }))
    expect(signedIn.json).toEqual({
      ok: true,
      token: expect.stringMatching(/^css_[A-Za-z0-9_-]{43}\../),
      session: {
        id: expect.any(String),
        userId: expect.any(String),
        adapterId: 'nimiq',
        publicKeyHex: wallet.publicKeyHex,
        address: wallet.address,
        createdAt: expect.any(Number),
        expiresAt: expect.any(Number),
        ip: expect.any(String),
        userAgent: expect.any(String),
        current: true,
      },
    })
    const { userId, createdAt, expiresAt } = signedIn.json.session
    // A host may look at the clock for each of the two.
    expect(Math.round((expiresAt - createdAt) / 1000)).toBe(604_800)
    expect(signedIn.headers.get('set-auth-token')).toBe(signedIn.json.token)
    expect(await driver.session(bearerOf(signedIn))).toMatchObject({ userId })
    expect(await driver.session(cookieOf(signedIn))).toMatchObject({ userId })
    expect(signedIn.headers.getSetCookie()[0]).toMatch(/Path=\/; HttpOnly; SameSite=Lax$/)
  })

  test('signing out ends that session and no other', async () => {
    const driver = await start()
    const signer = new Signer()
    const one = await signIn(driver, signer)
    const two = await signIn(driver, signer)
    expect(await driver.sessions(bearerOf(one))).toHaveLength(2)
    await driver.signOut(bearerOf(one))
    expect(await driver.session(bearerOf(one))).toBeUndefined()
    expect(await driver.session(cookieOf(one))).toBeUndefined()
    expect(await driver.sessions(bearerOf(two))).toEqual([two.json.session.id])
    await driver.signOut(bearerOf(one))
    expect(await driver.sessions(bearerOf(two))).toEqual([two.json.session.id])
  })

  test('a token counts with its signature only', async () => {
    const driver = await start()
    const { json } = await signIn(driver)
    const [unsigned, signature] = json.token.split('.')
    expect(await driver.session({ bearer: unsigned })).toBeUndefined()
    expect(await driver.session({ bearer: `${unsigned}x.${signature}` })).toBeUndefined()
    expect(await driver.session({ bearer: `${unsigned}.${'A'.repeat(signature.length)}` })).toBeUndefined()
  })

  test('a wallet is one user; another key is another user, and so is the same key under another adapter', async () => {
    const driver = await start()
    const signer = new Signer()
    const first = await signIn(driver, signer)
    const again = await signIn(driver, signer)
    const other = await signIn(driver, new Signer())
    const { json: challenge } = await ok(driver.call('issueNonce', {}))
    const proof = { nonceId: challenge.nonceId, ...signer.proveAsNimiq(challenge.message) }
    const asNimiq = await ok(driver.call('verifySignIn', proof))
    expect(again.json.session.userId).toBe(first.json.session.userId)
    expect(again.json.session.id).not.toBe(first.json.session.id)
    expect([first, asNimiq].map(({ json }) => json.session.adapterId)).toEqual(['ed25519', 'nimiq'])
    expect(asNimiq.json.session.publicKeyHex).toBe(first.json.session.publicKeyHex)
    expect(asNimiq.json.session.address).toBe(first.json.session.address)
    const users = [first, other, asNimiq].map(({ json }) => json.session.userId)
    expect(new Set(users).size).toBe(3)
    // Neither sees, and so neither can end, the other's sessions.
    expect(await driver.sessions(bearerOf(asNimiq))).toEqual([asNimiq.json.session.id])
    expect(await driver.sessions(bearerOf(first))).not.toContain(asNimiq.json.session.id)
  })

  test('a nonce is good once, also if its sign-in failed', async () => {
    const driver = await start()
    const signer = new Signer()
    const { json: spent } = await ok(driver.call('issueNonce', {}))
    const good = { nonceId: spent.nonceId, ...signer.prove(spent.message) }
    await ok(driver.call('verifySignIn', good))
    expect(await refusal(driver.call('verifySignIn', good))).toBe('NONCE_NOT_FOUND')

    const { json: wasted } = await ok(driver.call('issueNonce', {}))
    const proof = { nonceId: wasted.nonceId, ...signer.prove(wasted.message) }
    const forged = { ...proof, signatureHex: new Signer().prove(wasted.message).signatureHex }
    expect(await refusal(driver.call('verifySignIn', forged))).toBe('SIGNATURE_INVALID')
    expect(await refusal(driver.call('verifySignIn', proof))).toBe('NONCE_NOT_FOUND')
  })

  test('of 20 verifies of one nonce at once, one gets a session', async () => {
    const driver = await start()
    const signer = new Signer()
    const { json: challenge } = await ok(driver.call('issueNonce', {}))
    const proof = { nonceId: challenge.nonceId, ...signer.prove(challenge.message) }
    const outcomes = await Promise.all(Array.from({ length: 20 }, () => driver.call('verifySignIn', proof)))
    const won = outcomes.filter(({ reason }) => reason === undefined)
    expect(won).toHaveLength(1)
    expect(new Set(outcomes.map(({ reason }) => reason))).toEqual(new Set([undefined, 'NONCE_NOT_FOUND']))
    expect(await driver.sessions(bearerOf(won[0]!))).toHaveLength(1)
  })

  test('of 10 first sign-ins of one wallet at once, all are the same user', async () => {
    const driver = await start()
    const signer = new Signer()
    const outcomes = await Promise.all(Array.from({ length: 10 }, () => signIn(driver, signer)))
    expect(new Set(outcomes.map(({ json }) => json.session.userId)).size).toBe(1)
    expect(await driver.sessions(bearerOf(outcomes[0]!))).toHaveLength(10)
  })

  describe('refusals', () => {
    test('an address of another key, which uses up the nonce', async () => {
      const driver = await start()
      const wallet = makeWallet()
      const { json: challenge } = await ok(driver.call('issueNonce', {}))
      const proof = { ...proofOf(wallet, challenge), address: makeWallet().address }
      expect(await refusal(driver.call('verifySignIn', proof))).toBe('ADDRESS_MISMATCH')
      const { address: _address, ...right } = proof
      expect(await refusal(driver.call('verifySignIn', right))).toBe('NONCE_NOT_FOUND')
    })

    test('an expired nonce', async () => {
      const driver = await start({ nonceTtlSeconds: 60 })
      const signer = new Signer()
      const { json: late } = await ok(driver.call('issueNonce', {}))
      const { json: inTime } = await ok(driver.call('issueNonce', {}))
      const prove = ({ nonceId, message }: { nonceId: string; message: string }) =>
        driver.call('verifySignIn', { nonceId, ...signer.prove(message) })
      advance(59_000)
      await ok(prove(inTime))
      advance(1_000)
      expect(await refusal(prove(late))).toBe('NONCE_EXPIRED')
    })

    test('an unknown nonce, a malformed message, an unknown adapter', async () => {
      const driver = await start()
      const signer = new Signer()
      const proof = signer.prove('anything')
      expect(await refusal(driver.call('verifySignIn', { nonceId: 'nobody', ...proof }))).toBe('NONCE_NOT_FOUND')
      expect(await refusal(driver.call('verifySignIn', { nonceId: 'x', ...proof, publicKeyHex: 'xy' }))).toBe(
        'INVALID_REQUEST',
      )
      const { json: challenge } = await ok(driver.call('issueNonce', {}))
      const unknown = { nonceId: challenge.nonceId, ...signer.prove(challenge.message), adapterId: 'nobody' }
      expect(await refusal(driver.call('verifySignIn', unknown))).toBe('ADAPTER_UNKNOWN')
    })

    test('another application name', async () => {
      const driver = await start()
      expect(await refusal(driver.call('issueNonce', { appName: 'Another' }))).toBe('APP_NAME_MISMATCH')
    })

    test('an origin that is not trusted, and one that is not the nonce’s own', async () => {
      const driver = await start()
      const signer = new Signer()
      expect(await refusal(driver.call('issueNonce', {}, 'https://evil.example'))).toBe('ORIGIN_NOT_TRUSTED')
      expect(await refusal(driver.call('issueNonce', {}, 'null'))).toBe('ORIGIN_NOT_TRUSTED')
      const { json: challenge } = await ok(driver.call('issueNonce', {}))
      const proof = { nonceId: challenge.nonceId, ...signer.prove(challenge.message) }
      expect(await refusal(driver.call('verifySignIn', proof, otherOrigin))).toBe('ORIGIN_MISMATCH')
      // The nonce is still its owner's.
      await ok(driver.call('verifySignIn', proof))
    })

    test('no origin, where the operator said so', async () => {
      const driver = await start({ enforceOrigin: false })
      const signer = new Signer()
      const { json: challenge } = await ok(driver.call('issueNonce', {}, 'https://evil.example'))
      expect(challenge.origin).toBe('https://evil.example')
      const proof = { nonceId: challenge.nonceId, ...signer.prove(challenge.message) }
      await ok(driver.call('verifySignIn', proof, otherOrigin))
    })

    test('a wallet that resolveLogin does not know', async () => {
      const driver = await start({ resolveLogin: () => null })
      const signer = new Signer()
      const { json: challenge } = await ok(driver.call('issueNonce', {}))
      const proof = { nonceId: challenge.nonceId, ...signer.prove(challenge.message) }
      const refused = await driver.call('verifySignIn', proof)
      expect(refused.reason).toBe('LOGIN_REFUSED')
      expect(refused.headers.getSetCookie()).toEqual([])
    })

    test('everything, while resolveLogin cannot be asked', async () => {
      const driver = await start({ resolveLogin: () => Promise.reject(new Error('down')) })
      const { json: challenge } = await ok(driver.call('issueNonce', {}))
      const proof = { nonceId: challenge.nonceId, ...new Signer().prove(challenge.message) }
      expect(await refusal(driver.call('verifySignIn', proof))).toBe('HOST_UNAVAILABLE')
    })
  })

  test('a nonce store of the application’s own, without an atomic take, is used once all the same', async () => {
    const map = new Map<string, string>()
    const later = () => new Promise((resolve) => setTimeout(resolve, 5))
    const driver = await start({
      nonceStore: {
        async get(key) {
          await later()
          return map.get(key)
        },
        set: async (key, value) => map.set(key, value),
        async delete(key) {
          await later()
          map.delete(key)
        },
      },
    })
    const signer = new Signer()
    const { json: challenge } = await ok(driver.call('issueNonce', {}))
    expect(map.size).toBe(1)
    const proof = { nonceId: challenge.nonceId, ...signer.prove(challenge.message) }
    const outcomes = await Promise.all(Array.from({ length: 10 }, () => driver.call('verifySignIn', proof)))
    expect(outcomes.filter(({ reason }) => reason === undefined)).toHaveLength(1)
    expect(map.size).toBe(0)
  })
}
