import { describe, expect, test } from 'vitest'
import { FloorOrders } from '../../bench/floor-orders.ts'
import { FloorSignIn } from '../../bench/floor-sign-in.ts'
import { type FloorSteps, openSteps } from '../../bench/floor-steps.ts'
import { restPaths } from '../../bench/rest.ts'
import { publicUrl, type ServerProcess, startCountersign, startSignInFloor } from '../../bench/servers.ts'
import { makeWallets, type Wallet } from '../../bench/wallets.ts'

// A floor that left these out would be compared with as what it is not.
const [wallet, other] = makeWallets(2) as [Wallet, Wallet]
const caller = { ip: '127.0.0.1', userAgent: 'a browser' }

describe.each(['bare', 'least', 'same commands'] as const)('the floor of a sign-in, %s', (work) => {
  const open = async (): Promise<FloorSignIn> => new FloorSignIn(await openSteps('sqlite::memory:'), work)

  test('a nonce is good once, and the session is found by its token', async () => {
    const floor = await open()
    const { nonceId, message } = await floor.issue('http://shop.example')
    const proof = { nonceId, ...wallet.prove(message) }
    const { token } = await floor.verify(proof, caller)
    expect(await floor.session(`Bearer ${token}`)).toMatchObject({ publicKeyHex: proof.publicKeyHex })
    await expect(floor.session('Bearer another')).rejects.toThrow('no such session')
    await expect(floor.verify(proof, caller)).rejects.toThrow('no such nonce')
  })

  test("another wallet's signature is refused", async () => {
    const floor = await open()
    const { nonceId, message } = await floor.issue('http://shop.example')
    const { publicKeyHex } = wallet.prove(message)
    const { signatureHex } = other.prove(message)
    await expect(floor.verify({ nonceId, publicKeyHex, signatureHex }, caller)).rejects.toThrow('not signed')
  })
})

/** Steps that note their names; those that are begun before any has ended are one trip. */
function noted(steps: FloorSteps): { readonly steps: FloorSteps; readonly trips: string[][] } {
  const trips: string[][] = []
  let isOnTheWay = false
  const note = (name: string): void => {
    if (isOnTheWay) trips.at(-1)?.push(name)
    else trips.push([name])
    isOnTheWay = true
  }
  const proxy = new Proxy(steps, {
    get: (target, name: keyof FloorSteps) => {
      const step = target[name] as (...args: unknown[]) => unknown
      return async (...args: unknown[]) => {
        note(name)
        const result = await step(...args)
        setImmediate(() => (isOnTheWay = false))
        await new Promise((resolve) => setImmediate(resolve))
        return result
      }
    },
  })
  return { steps: proxy, trips }
}

test.each([
  ['bare', [['set'], ['take'], ['set']]],
  ['least', [['set'], ['take', 'get'], ['set', 'addMember']]],
  ['same commands', [['set'], ['get', 'get', 'get'], ['take'], ['set', 'addMember'], ['get', 'get']]],
] as const)('a sign-in of somebody who is known makes these trips to the store, %s', async (work, expected) => {
  const { steps, trips } = noted(await openSteps('sqlite::memory:'))
  const floor = new FloorSignIn(steps, work)
  const signIn = async (): Promise<void> => {
    const { nonceId, message } = await floor.issue('http://shop.example')
    await floor.verify({ nonceId, ...wallet.prove(message) }, caller)
  }
  await signIn()
  trips.length = 0
  await signIn()
  expect(trips).toEqual(expected)
})

/** Names of the headers and fields of what a server answers to a sign-in. */
async function shapeOfSignIn({ port }: ServerProcess): Promise<unknown> {
  const post = async (path: string, body: object) => {
    const headers = { 'content-type': 'application/json', origin: publicUrl }
    const response = await fetch(`http://127.0.0.1:${port}${path}`, {
      method: 'POST',
      headers,
      body: JSON.stringify(body),
    })
    const names = [...response.headers.keys()].filter((name) => name !== 'keep-alive')
    return { names: names.sort(), json: (await response.json()) as Record<string, string> }
  }
  const challenge = await post(restPaths.nonce, {})
  const { nonceId, message = '' } = challenge.json
  const signedIn = await post(restPaths.verify, { nonceId, ...wallet.prove(message) })
  const fieldsOf = (json: object): string[] => Object.keys(json).sort()
  return [
    challenge.names,
    fieldsOf(challenge.json),
    signedIn.names,
    fieldsOf(signedIn.json),
    fieldsOf(Object(signedIn.json.session)),
  ]
}

test.each(['least', 'same commands'] as const)(
  'a floor answers a sign-in over REST with the headers and fields of Countersign’s, %s',
  async (work) => {
    await using own = await startCountersign('sqlite::memory:')
    await using floor = await startSignInFloor('sqlite::memory:', work, 'http')
    expect(await shapeOfSignIn(floor)).toEqual(await shapeOfSignIn(own))
  },
)

test('the floor of an order tells its watcher of every status, and refuses a signature that does not hold', async () => {
  const floor = new FloorOrders(await openSteps('sqlite::memory:'))
  const { orderId = '' } = await floor.start('http://shop.example')
  const seen: string[] = []
  await floor.watch(
    orderId,
    (status) => seen.push(status),
    () => seen.push('end'),
  )
  await floor.claim({ orderId })
  const { message = '' } = await floor.challenge({ orderId })
  const { publicKeyHex } = wallet.prove(message)
  const { signatureHex } = other.prove(message)
  await expect(floor.approve(orderId, { publicKeyHex, signatureHex })).rejects.toThrow('not signed')
  await floor.approve(orderId, wallet.prove(message))
  expect(await floor.finalize({ orderId })).toHaveProperty('token')
  expect(seen).toEqual(['created', 'claimed', 'waiting_user', 'approved', 'finalized', 'end'])
})
