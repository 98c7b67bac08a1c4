import { expect, test } from 'vitest'
import { memoryStore } from '../../support/memory-store.ts'
import { startService } from '../../support/service.ts'
import { countTrips } from '../../support/trip-counter.ts'
import { makeWallet, proofOf, type TestWallet } from '../../support/wallet.ts'

// What direct sign-in and session checks ask of the store. A line is a trip: steps that begin together. The call waits
// for the answers of one before it goes on to the next.

async function start() {
  const store = await memoryStore()
  const counted = countTrips(store)
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
  const signIn = async (wallet: TestWallet) => {
    await counted.taken()
    const challenge = await ask('/wallet/nonce', {})
    const issued = await counted.taken()
    const { token } = await ask('/wallet/verify', proofOf(wallet, challenge))
    return { issued, verified: await counted.taken(), token }
  }
  const check = async (token: string) => {
    await ask('/session', undefined, { authorization: `Bearer ${token}` })
    return await counted.taken()
  }
  return { signIn, check }
}

const nonce = ['take']
const session = ['addMember + create', 'get + get']

test('a nonce takes one trip, and the sign-in of a wallet that is known four', async () => {
  const { signIn } = await start()
  const wallet = makeWallet()
  await signIn(wallet)
  const { issued, verified } = await signIn(wallet)
  expect(issued).toEqual(['create'])
  expect(verified).toEqual([...nonce, 'get + get', ...session])
})

test('the first sign-in of a wallet takes two trips more, because its claim comes before its user\u2019s record', async () => {
  const { signIn } = await start()
  const { verified } = await signIn(makeWallet())
  expect(verified).toEqual([...nonce, 'get + get', 'create', 'create', ...session])
})

test('a session check takes one', async () => {
  const { signIn, check } = await start()
  const { token } = await signIn(makeWallet())
  expect(await check(token)).toEqual(['get'])
})
