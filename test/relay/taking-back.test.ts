import { describe, expect, test } from 'vitest'
import type { StartedOrder } from '../../src/shared/orders.ts'
import {
  Computer as DomainComputer,
  desktop,
  makeInstance,
  phone,
  Signer,
  untilApproved,
  untilCode,
} from '../core/order/support.ts'
import { memoryStore } from '../support/memory-store.ts'
import { Computer, Phone } from './devices.ts'
import { places, reasonOf, Scene } from './scene.ts'
import { type ColumnId, columns } from './table.ts'
import { shown, Victim } from './victim.ts'

/** A page of the attacker's that shows all that it has. */
const trap = (order: StartedOrder) => ({
  story: 'Claim your 100 NIM reward',
  site: 'https://prize.example',
  ...shown(order),
  asksForCode: true,
})

const gullible = { typesCode: 'wherever they are asked for it' } as const

// With an enforced network, the attacker is on the victim's.
const attackerIn = (column: ColumnId) => (column === 'proximity' ? places.neighbour : places.attacker)

describe.each(Object.keys(columns) as ColumnId[])('%s: a victim who notices', (column) => {
  test('takes from the attacker by the phone what they have gained, and they cannot get it again', async () => {
    const scene = await Scene.open(column)
    const victim = new Victim(scene, gullible)
    const attacker = new Computer(scene, attackerIn(column))
    const order = await attacker.start()
    const { typed } = await victim.follow({ ...trap(order), qrCode: order.claimUrl })
    const token = await attacker.finalize(order, typed)
    const { address } = victim.wallet
    expect(await scene.hasGained(token, address)).toBe(true)

    const undone = column === 'link' ? { walletUnlinked: true } : { sessionEnded: true }
    expect(await victim.phone.reject()).toMatchObject({ status: 'finalized', ...undone })
    expect(await scene.hasGained(token, address)).toBe(false)
    expect(await reasonOf(attacker.finalize(order, typed))).toBe('ORDER_REJECTED')
  })

  test('before the attacker has finalized leaves nothing to finalize', async () => {
    const scene = await Scene.open(column)
    const victim = new Victim(scene, gullible)
    const attacker = new Computer(scene, attackerIn(column))
    const order = await attacker.start()
    const { typed } = await victim.follow({ ...trap(order), qrCode: order.claimUrl })
    expect(await victim.phone.reject()).toEqual({ ok: true, orderId: order.orderId, status: 'rejected' })
    expect(await reasonOf(attacker.finalize(order, typed))).toBe('ORDER_REJECTED')
  })
})

test('a text that was signed on a foreign page cannot be taken back by its victim, who ends other sessions instead', async () => {
  const scene = await Scene.open('return')
  const victim = new Victim(scene)
  const attacker = new Computer(scene, places.attacker)
  const order = await attacker.start()
  const phone = new Phone(scene, places.attacker)
  await phone.claim(order.claimUrl)
  const signature = victim.sign((await phone.challenge()).message, 'https://prize.example') as string
  const { returnCode } = await phone.approve(victim.wallet, signature)
  const stolen = await attacker.finalize(order, returnCode)
  expect(await scene.signedIn(stolen)).toBe(victim.wallet.address)

  const own = await victim.signInAt(new Computer(scene, places.victimsComputer))
  await scene.revokeOthers(own)
  expect(await scene.signedIn(stolen)).toBeUndefined()
  expect(await scene.signedIn(own)).toBe(victim.wallet.address)
})

test('a take-back whose server fails in the middle forgets the computer all the same', async () => {
  const store = await memoryStore()
  const instance = makeInstance(store, {
    settings: { confirmationCode: 'return' },
    wrapHost: (host) => {
      host.endOrderSession = () => Promise.reject(new Error('the host is away'))
      return host
    },
  })
  const computer = new DomainComputer()
  const signer = new Signer()
  const login = { kind: 'login', computerKey: computer.computerKey } as const
  const order = await untilCode(instance, login, signer, { rememberComputer: true })
  await instance.orders.finalize({ ...order, computerProof: computer.prove(order) }, desktop)
  expect((await untilApproved(instance, login, signer)).returnCode).toBeUndefined()
  await expect(instance.orders.reject(order, phone)).rejects.toThrow('the host is away')
  expect((await untilApproved(instance, login, signer)).returnCode).toMatch(/^[0-9]{6}$/)
})
