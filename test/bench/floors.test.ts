import { describe, expect, test } from 'vitest'
import { FloorOrders } from '../../bench/floor-orders.ts'
import { FloorSignIn } from '../../bench/floor-sign-in.ts'
import { openSteps } from '../../bench/floor-steps.ts'
import { makeWallets, type Wallet } from '../../bench/wallets.ts'

// A floor that left these out would be compared with as what it is not.
const [wallet, other] = makeWallets(2) as [Wallet, Wallet]

describe.each(['least', 'same commands'] as const)('the floor of a sign-in, %s', (work) => {
  const open = async (): Promise<FloorSignIn> => new FloorSignIn(await openSteps('sqlite::memory:'), work)

  test('a nonce is good once, and the session is found by its token', async () => {
    const floor = await open()
    const { nonceId, message } = await floor.issue('http://shop.example')
    const proof = { nonceId, ...wallet.prove(message) }
    const { token } = await floor.verify(proof)
    expect(await floor.session(`Bearer ${token}`)).toMatchObject({ publicKeyHex: proof.publicKeyHex })
    await expect(floor.session('Bearer another')).rejects.toThrow('no such session')
    await expect(floor.verify(proof)).rejects.toThrow('no such nonce')
  })

  test("another wallet's signature is refused", async () => {
    const floor = await open()
    const { nonceId, message } = await floor.issue('http://shop.example')
    const { publicKeyHex } = wallet.prove(message)
    const { signatureHex } = other.prove(message)
    await expect(floor.verify({ nonceId, publicKeyHex, signatureHex })).rejects.toThrow('not signed')
  })
})

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
