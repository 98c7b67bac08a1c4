import { createClient } from '@connectrpc/connect'
import { createConnectTransport } from '@connectrpc/connect-node'
import { afterEach, describe, expect, onTestFinished, test, vi } from 'vitest'
import { SignInService } from '../../gen/server/countersign/v1/sign_in_service_pb.ts'
import { WalletService } from '../../gen/server/countersign/v1/wallet_service_pb.ts'
import type { Store } from '../../src/index.ts'
import type { CountersignOptions } from '../../src/service/config.ts'
import { makeInstance, openOnOurClock, passTime } from '../core/order/support.ts'
import { makeComputer } from '../support/computer.ts'
import { approveOrder, signIn } from '../support/flows.ts'
import { memoryStore } from '../support/memory-store.ts'
import { bearer, okay, type RestAnswer, refusal, rest } from '../support/rest.ts'
import { startService } from '../support/service.ts'
import { makeWallet, proofOf, type TestWallet } from '../support/wallet.ts'

afterEach(() => void vi.useRealTimers())

const minutes = 60_000

/** What the users of a service do. All act from its own origin. */
class Users {
  readonly url: string

  constructor(url: string) {
    this.url = url
  }

  async signIn(wallet: TestWallet): Promise<{ token: string; session: { id: string; userId: string } }> {
    return await signIn(this.url, wallet)
  }

  /** Signs in by an order. With a computer, that is remembered. */
  async signInByOrder(wallet: TestWallet, computer?: Awaited<ReturnType<typeof makeComputer>>) {
    const started = okay(await rest(this.url, '/cross-device/start', { kind: 'login', computerKey: computer?.key }))
    const { orderId, desktopToken } = started
    const { returnCode } = await approveOrder(this.url, started, { wallet, rememberComputer: computer !== undefined })
    const computerProof = await computer?.prove({ orderId, desktopToken })
    const finalized = await rest(this.url, '/cross-device/finalize', {
      orderId,
      desktopToken,
      returnCode,
      computerProof,
    })
    return okay(finalized) as Awaited<ReturnType<Users['signIn']>>
  }

  async linkNonce(token: string): Promise<RestAnswer> {
    return await rest(this.url, '/wallet/nonce', { purpose: 'link' }, bearer(token))
  }

  /** A proof for linking a wallet to the user of a session, as LinkWallet takes it. */
  async linkProof(token: string, wallet: TestWallet) {
    const { nonceId, ...proof } = proofOf(wallet, okay(await this.linkNonce(token)))
    return { nonceId, proof }
  }

  async link(token: string, wallet: TestWallet): Promise<RestAnswer> {
    return await rest(this.url, '/wallet/link', await this.linkProof(token, wallet), bearer(token))
  }

  async unlink(token: string, { address }: { readonly address: string }, adapterId = 'nimiq'): Promise<RestAnswer> {
    return await rest(this.url, '/wallet/unlink', { adapterId, address }, bearer(token))
  }

  /** The addresses of the wallets of a session's user. */
  async addresses(token: string): Promise<string[]> {
    const { wallets } = okay(await rest(this.url, '/wallet/list', undefined, bearer(token)))
    return wallets.map(({ address }: { address: string }) => address)
  }

  async computers(token: string): Promise<string[]> {
    const { computers } = okay(await rest(this.url, '/computers', undefined, bearer(token)))
    return computers.map(({ id }: { id: string }) => id)
  }

  async isSignedIn(token: string): Promise<boolean> {
    return (await rest(this.url, '/session', undefined, bearer(token))).status === 200
  }
}

describe('the wallets of a user:', () => {
  async function start(options: CountersignOptions = {}): Promise<Users> {
    const store = await openOnOurClock('sqlite::memory:')
    onTestFinished(() => store.close())
    return new Users((await startService({ store, ...options })).url)
  }

  test('a second wallet that is linked signs in as the same user, and the list says which is which', async () => {
    const users = await start()
    const [first, second] = [makeWallet(), makeWallet()]
    const { token, session } = await users.signIn(first)
    expect(okay(await users.link(token, second))).toEqual({
      wallet: {
        adapterId: 'nimiq',
        address: second.address,
        publicKeyHex: second.publicKeyHex,
        linkedAt: expect.any(Number),
        current: false,
      },
    })
    const by = await users.signIn(second)
    expect(by.session).toMatchObject({ userId: session.userId, address: second.address })
    expect((await users.signInByOrder(second)).session.userId).toBe(session.userId)
    const { wallets } = okay(await rest(users.url, '/wallet/list', undefined, bearer(by.token)))
    expect(wallets).toMatchObject([
      { address: first.address, current: false },
      { address: second.address, current: true },
    ])
    expect(wallets[0].linkedAt).toBeLessThanOrEqual(wallets[1].linkedAt)
    const { sessions } = okay(await rest(users.url, '/sessions', undefined, bearer(token)))
    expect(sessions).toHaveLength(3)
  })

  test('the text to sign names the user and the wallet that the user is signed in with', async () => {
    const users = await start()
    const wallet = makeWallet()
    const { token, session } = await users.signIn(wallet)
    const challenge = okay(await users.linkNonce(token))
    expect(challenge).toMatchObject({ action: 'auth.link', challengeId: 'link' })
    expect(challenge.message).toContain('Action: auth.link\n')
    expect(challenge.message).toContain(`\nUser: ${session.userId}\nSession Account: ${wallet.address}`)
  })

  test('linking a wallet that is the user’s already is no error and changes nothing', async () => {
    const users = await start()
    const [first, second] = [makeWallet(), makeWallet()]
    const { token } = await users.signIn(first)
    const linked = okay(await users.link(token, second))
    expect(okay(await users.link(token, second))).toEqual(linked)
    expect(okay(await users.link(token, first)).wallet).toMatchObject({ address: first.address, current: true })
    expect(await users.addresses(token)).toEqual([first.address, second.address])
  })

  test('a wallet is unlinked by its address in any form; its sessions end, and it signs in as a new user', async () => {
    const users = await start()
    const [first, second] = [makeWallet(), makeWallet()]
    const { token, session } = await users.signIn(first)
    okay(await users.link(token, second))
    const other = await users.signIn(second)
    const address = second.address.replaceAll(' ', '').toLowerCase()
    expect(okay(await users.unlink(token, { address }))).toEqual({})
    expect(await users.isSignedIn(other.token)).toBe(false)
    expect(await users.isSignedIn(token)).toBe(true)
    expect(await users.addresses(token)).toEqual([first.address])
    expect(refusal(await users.unlink(token, second))).toEqual([404, 'WALLET_NOT_FOUND'])
    const again = await users.signIn(second)
    expect(again.session.userId).not.toBe(session.userId)
    expect(again.session.userId).not.toBe(other.session.userId)
    expect((await users.signIn(second)).session.userId).toBe(again.session.userId)
    expect(await users.addresses(again.token)).toEqual([second.address])
  })

  test('the wallet that the user began with can be unlinked, and is not let in as that user again', async () => {
    const users = await start()
    const [first, second] = [makeWallet(), makeWallet()]
    const { token, session } = await users.signIn(first)
    okay(await users.link(token, second))
    okay(await users.unlink(token, first))
    expect(await users.isSignedIn(token)).toBe(false)
    expect((await users.signIn(first)).session.userId).not.toBe(session.userId)
    const by = await users.signIn(second)
    expect(by.session.userId).toBe(session.userId)
    expect(await users.addresses(by.token)).toEqual([second.address])
  })

  describe('no account is taken over or lost', () => {
    test('by linking another user’s wallet, which stays that user’s', async () => {
      const users = await start()
      const [mine, theirs, alsoTheirs] = [makeWallet(), makeWallet(), makeWallet()]
      const { token } = await users.signIn(mine)
      const other = await users.signIn(theirs)
      okay(await users.link(other.token, alsoTheirs))
      for (const wallet of [theirs, alsoTheirs]) {
        expect(refusal(await users.link(token, wallet))).toEqual([409, 'WALLET_TAKEN'])
        expect((await users.signIn(wallet)).session.userId).toBe(other.session.userId)
      }
      expect(await users.addresses(token)).toEqual([mine.address])
    })

    test('by linking a wallet that has signed in alone before; the refusal says the way out, which works', async () => {
      const users = await start()
      const [mine, alone, spare] = [makeWallet(), makeWallet(), makeWallet()]
      const { token, session } = await users.signIn(mine)
      const own = await users.signIn(alone)
      const refused = await users.link(token, alone)
      expect(refusal(refused)).toEqual([409, 'WALLET_TAKEN'])
      expect(refused.json.message).toMatch(/sign in with it and unlink it there, which needs another wallet/)
      okay(await users.link(own.token, spare))
      okay(await users.unlink(own.token, alone))
      okay(await users.link(token, alone))
      expect((await users.signIn(alone)).session.userId).toBe(session.userId)
    })

    test('by the signature of a sign-in, which links nothing', async () => {
      const users = await start()
      const [mine, victim] = [makeWallet(), makeWallet()]
      const { token } = await users.signIn(mine)
      const signInNonce = okay(await rest(users.url, '/wallet/nonce', {}))
      const { nonceId, ...proof } = proofOf(victim, signInNonce)
      const refused = await rest(users.url, '/wallet/link', { nonceId, proof }, bearer(token))
      expect(refusal(refused)).toEqual([401, 'NONCE_NOT_FOUND'])
      // The nonce of a link with the signature of a sign-in.
      const own = okay(await users.linkNonce(token))
      const crossed = await rest(users.url, '/wallet/link', { nonceId: own.nonceId, proof }, bearer(token))
      expect(refusal(crossed)).toEqual([401, 'SIGNATURE_INVALID'])
      expect(await users.addresses(token)).toEqual([mine.address])
      // The victim's own sign-in was not spent.
      expect((await rest(users.url, '/wallet/verify', { nonceId, ...proof })).status).toBe(200)
    })

    test('by the signature of a link, which makes no session; the nonce stays unspent', async () => {
      const users = await start()
      const [mine, second] = [makeWallet(), makeWallet()]
      const { token } = await users.signIn(mine)
      const { nonceId, proof } = await users.linkProof(token, second)
      const refused = await rest(users.url, '/wallet/verify', { nonceId, ...proof })
      expect(refusal(refused)).toEqual([401, 'NONCE_NOT_FOUND'])
      okay(await rest(users.url, '/wallet/link', { nonceId, proof }, bearer(token)))
    })

    test('by a link that was signed for another user; that one’s nonce stays unspent', async () => {
      const users = await start()
      const [attacker, user, wallet] = [makeWallet(), makeWallet(), makeWallet()]
      const [theirs, own] = [await users.signIn(attacker), await users.signIn(user)]
      const proof = await users.linkProof(own.token, wallet)
      const refused = await rest(users.url, '/wallet/link', proof, bearer(theirs.token))
      expect(refusal(refused)).toEqual([401, 'NONCE_NOT_FOUND'])
      okay(await rest(users.url, '/wallet/link', proof, bearer(own.token)))
      expect((await users.signIn(wallet)).session.userId).toBe(own.session.userId)
    })

    test('by using a nonce twice, or after a wrong signature', async () => {
      const users = await start()
      const { token } = await users.signIn(makeWallet())
      const [wallet, other] = [makeWallet(), makeWallet()]
      const proof = await users.linkProof(token, wallet)
      const forged = { ...proof, proof: { ...proof.proof, publicKeyHex: other.publicKeyHex } }
      expect(refusal(await rest(users.url, '/wallet/link', forged, bearer(token)))).toEqual([401, 'SIGNATURE_INVALID'])
      expect(refusal(await rest(users.url, '/wallet/link', proof, bearer(token)))).toEqual([401, 'NONCE_NOT_FOUND'])
    })

    /** The three calls that change wallets, with what makes them succeed for a fresh session of the same user. */
    async function changes(users: Users, fresh: string, second: TestWallet) {
      const proof = await users.linkProof(fresh, makeWallet())
      return (token: string) =>
        Promise.all([
          users.linkNonce(token),
          rest(users.url, '/wallet/link', proof, bearer(token)),
          users.unlink(token, second),
        ])
    }

    test('by a session that is ten minutes old, also one that was fresh when the nonce was issued', async () => {
      const users = await start()
      const [wallet, second] = [makeWallet(), makeWallet()]
      const { token } = await users.signIn(wallet)
      okay(await users.link(token, second))
      passTime(9 * minutes)
      okay(await users.linkNonce(token))
      const fresh = await users.signIn(wallet)
      const change = await changes(users, fresh.token, second)
      passTime(1 * minutes)
      for (const answer of await change(token)) expect(refusal(answer)).toEqual([403, 'SESSION_NOT_FRESH'])
      expect(await users.addresses(token)).toHaveLength(2)
      // By use it grows no younger.
      expect(await users.isSignedIn(token)).toBe(true)
      for (const answer of await change(fresh.token)) okay(answer)
    })

    test('by a session that an order made, however young: a relayed order makes one, too', async () => {
      const users = await start()
      const [victim, second] = [makeWallet(), makeWallet()]
      const fresh = await users.signIn(victim)
      okay(await users.link(fresh.token, second))
      const relayed = await users.signInByOrder(victim)
      expect(relayed.session.userId).toBe(fresh.session.userId)
      const change = await changes(users, fresh.token, second)
      for (const answer of await change(relayed.token)) expect(refusal(answer)).toEqual([403, 'SESSION_NOT_FRESH'])
      // It sees them.
      expect(await users.addresses(relayed.token)).toHaveLength(2)
      for (const answer of await change(fresh.token)) okay(answer)
    })

    test('by unlinking the last wallet', async () => {
      const users = await start()
      const [first, second] = [makeWallet(), makeWallet()]
      const { token } = await users.signIn(first)
      expect(refusal(await users.unlink(token, first))).toEqual([409, 'LAST_WALLET'])
      okay(await users.link(token, second))
      okay(await users.unlink(token, second))
      expect(refusal(await users.unlink(token, first))).toEqual([409, 'LAST_WALLET'])
      expect(await users.isSignedIn(token)).toBe(true)
    })

    test('by unlinking another user’s wallet', async () => {
      const users = await start()
      const [mine, second, theirs] = [makeWallet(), makeWallet(), makeWallet()]
      const { token } = await users.signIn(mine)
      okay(await users.link(token, second))
      const other = await users.signIn(theirs)
      expect(refusal(await users.unlink(token, theirs))).toEqual([404, 'WALLET_NOT_FOUND'])
      // The same address under another adapter is another wallet.
      expect(refusal(await users.unlink(token, second, 'ed25519'))).toEqual([404, 'WALLET_NOT_FOUND'])
      expect(await users.isSignedIn(other.token)).toBe(true)
    })

    test('without a session, or by a cookie from another site', async () => {
      const users = await start()
      const { token } = await users.signIn(makeWallet())
      const proof = await users.linkProof(token, makeWallet())
      const calls: [path: string, body?: object][] = [
        ['/wallet/list'],
        ['/wallet/nonce', { purpose: 'link' }],
        ['/wallet/link', proof],
        ['/wallet/unlink', { adapterId: 'nimiq', address: 'NQ07 0000' }],
      ]
      for (const [path, body] of calls) {
        expect(refusal(await rest(users.url, path, body))).toEqual([401, 'SESSION_REQUIRED'])
        const foreign = { cookie: `countersign_session=${token}`, origin: 'https://evil.example' }
        expect(refusal(await rest(users.url, path, body, foreign))).toEqual([403, 'ORIGIN_NOT_TRUSTED'])
      }
    })
  })

  test('computers that are known for one wallet of a user are listed and forgotten by the sessions of another', async () => {
    const users = await start({ confirmationCode: 'return' })
    const [first, second] = [makeWallet(), makeWallet()]
    const { token } = await users.signIn(first)
    okay(await users.link(token, second))
    const [one, two] = [await makeComputer(), await makeComputer()]
    const signedOut = async () => {
      for (const [wallet, computer] of [
        [first, one],
        [second, two],
      ] as const) {
        const { token: byOrder } = await users.signInByOrder(wallet, computer)
        okay(await rest(users.url, '/sign-out', {}, bearer(byOrder)))
      }
    }
    await signedOut()
    const known = await users.computers(token)
    expect(known).toHaveLength(2)
    for (const id of known) okay(await rest(users.url, '/computers/forget', { id }, bearer(token)))
    expect(await users.computers(token)).toEqual([])

    // Of the second wallet, no session is live.
    await signedOut()
    expect(await users.computers(token)).toHaveLength(2)
    const revoked = await fetch(`${users.url}/countersign.v1.SessionService/RevokeOtherSessions`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...bearer(token) },
      body: '{}',
    })
    expect(await revoked.json()).toEqual({ ok: true })
    expect(await users.computers(token)).toEqual([])

    await signedOut()
    okay(await users.unlink(token, second))
    expect(await users.computers(token)).toHaveLength(1)
    expect(await users.computers((await users.signIn(second)).token)).toEqual([])
  })
})

test('the same over RPCs, by a cookie', async () => {
  const { url } = await startService()
  const transport = createConnectTransport({ baseUrl: url, httpVersion: '1.1' })
  const [signIn, wallets] = [createClient(SignInService, transport), createClient(WalletService, transport)]
  const [first, second] = [makeWallet(), makeWallet()]
  const origin = { origin: url }
  let cookie = ''
  await signIn.verifySignIn(proofOf(first, await signIn.issueNonce({}, { headers: origin })), {
    headers: origin,
    onHeader: (headers) => {
      cookie = headers.getSetCookie()[0]?.split(';')[0] ?? ''
    },
  })
  const options = { headers: { ...origin, cookie } }
  const { nonceId, ...proof } = proofOf(second, await signIn.issueNonce({ purpose: 2 }, options))
  const { wallet } = await wallets.linkWallet({ nonceId, proof }, options)
  expect(wallet).toMatchObject({ adapterId: 'nimiq', address: second.address, current: false })
  await wallets.unlinkWallet({ adapterId: 'nimiq', address: first.address }, options)
  await expect(wallets.listWallets({}, options)).rejects.toThrow(/sign in again/)
})

test('with syncAddressToUser and syncPublicKeyToUser, a user has those of the wallet that signed in last', async () => {
  const { url, service } = await startService({ syncAddressToUser: true, syncPublicKeyToUser: true })
  const users = new Users(url)
  const [first, second] = [makeWallet(), makeWallet()]
  const { token, session } = await users.signIn(first)
  okay(await users.link(token, second))
  const userNow = () => service.findUser(session.userId)
  const ofWallet = ({ address, publicKeyHex }: TestWallet) => ({ address, publicKeyHex })
  const common = { id: session.userId, createdAt: expect.any(Number) }
  expect(await userNow()).toEqual({ ...common, ...ofWallet(first) })
  await users.signIn(second)
  expect(await userNow()).toEqual({ ...common, ...ofWallet(second) })
  await users.signIn(first)
  expect(await userNow()).toEqual({ ...common, ...ofWallet(first) })
})

describe('if the application keeps users or sessions itself, there are no wallets to list, link or unlink', () => {
  test.each<[name: string, options: (store: Store) => CountersignOptions]>([
    ['resolveLogin', () => ({ resolveLogin: ({ subject }) => ({ id: subject }) })],
    ['sessionHost', (store) => ({ store, sessionHost: makeInstance(store).host })],
  ])('%s', async (_name, options) => {
    const { url } = await startService(options(await memoryStore()))
    const { token } = await signIn(url)
    const proof = { publicKeyHex: 'ab'.repeat(32), signatureHex: 'cd'.repeat(64) }
    for (const headers of [{}, bearer(token)]) {
      const answers = [
        await rest(url, '/wallet/nonce', { purpose: 'link' }, headers),
        await rest(url, '/wallet/list', undefined, headers),
        await rest(url, '/wallet/link', { nonceId: 'n', proof }, headers),
        await rest(url, '/wallet/unlink', { adapterId: 'nimiq', address: 'NQ07' }, headers),
      ]
      for (const answer of answers) expect(refusal(answer)).toEqual([404, 'NOT_ENABLED'])
    }
  })
})
