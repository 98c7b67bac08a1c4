import { describe, expect, onTestFinished, test } from 'vitest'
import { openStore } from '../../src/index.ts'
import { startService } from '../support/service.ts'
import { countTrips } from '../support/trip-counter.ts'
import { makeWallet, proofOf, type TestWallet } from '../support/wallet.ts'

// What direct sign-in and session checks ask of the store. A line is a trip: steps that begin together. The call waits for the answers
// of one before it goes on to the next.

async function start(inOrder: boolean) {
  const store = await openStore('sqlite::memory:')
  onTestFinished(() => store.close())
  const counted = countTrips(store, { inOrder })
  const { url } = await startService({ store: counted.store, secret: 'a secret for tests and for nothing else' })
  const ask = async (path: string, body: object | undefined, headers: Record<string, string> = {}) => {
    const answer = await fetch(`${url}/api/auth${path}`, {
      method: body === undefined ? 'GET' : 'POST',
      headers: { 'content-type': 'application/json', origin: url, ...headers },
      ...(body && { body: JSON.stringify(body) }),
    })
    expect(answer.status).toBe(200)
    return await answer.json()
  }
  const signIn = async (wallet: TestWallet, adapterId?: string) => {
    await counted.taken()
    const challenge = await ask('/wallet/nonce', {})
    const issued = await counted.taken()
    const { token } = await ask('/wallet/verify', { ...proofOf(wallet, challenge), adapterId })
    return { issued, verified: await counted.taken(), token }
  }
  const check = async (token: string) => {
    await ask('/session', undefined, { authorization: `Bearer ${token}` })
    return await counted.taken()
  }
  return { signIn, check }
}

describe.each([
  ['a store that keeps the order of steps', true, 'get + get + takeIf', ['addMember + create + get + get']],
  ['a store that does not, as a cluster', false, 'get + get + takeIf', ['addMember + create', 'get + get']],
] as const)('on %s', (_, inOrder, reading, session) => {
  test('a nonce takes one trip, and the sign-in of a wallet that is known two or three', async () => {
    const { signIn } = await start(inOrder)
    const wallet = makeWallet()
    await signIn(wallet)
    const { issued, verified } = await signIn(wallet)
    expect(issued).toEqual(['create'])
    expect(verified).toEqual([reading, ...session])
  })

  test('the first sign-in of a wallet takes two trips more, because its claim comes before its user', async () => {
    const { signIn } = await start(inOrder)
    const { verified } = await signIn(makeWallet())
    expect(verified).toEqual([reading, 'create', 'create', ...session])
  })

  test('a key in upper case is known to be the same wallet’s before its proof is checked', async () => {
    const { signIn } = await start(inOrder)
    const wallet = makeWallet()
    await signIn(wallet)
    const { verified } = await signIn({ ...wallet, publicKeyHex: wallet.publicKeyHex.toUpperCase() }, 'nimiq')
    expect(verified).toEqual([reading, ...session])
  })

  test('a session check takes one', async () => {
    const { signIn, check } = await start(inOrder)
    const { token } = await signIn(makeWallet())
    expect(await check(token)).toEqual(['get'])
  })
})
