import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import type { KnownComputer } from '../../src/shared/session.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'
import { makeWallet } from '../support/wallet.ts'
import { Computer, newComputerKey, Phone } from './devices.ts'
import { places, reasonOf, Scene } from './scene.ts'
import { type ColumnId, columns } from './table.ts'
import { ownScreen, Victim, victimsComputer } from './victim.ts'

/** A page of the attacker's that shows an order, and asks for nothing. */
const trap = ({ claimUrl }: { readonly claimUrl: string }) => ({
  story: 'Claim your 100 NIM reward',
  site: 'https://prize.example',
  qrCode: claimUrl,
  asksForCode: false,
})

/** A victim who gives a code to whoever asks, and lets a computer be remembered. */
const gullible = { typesCode: 'wherever they are asked for it', remembers: true } as const

/** Relays one order to a victim who types the code on the attacker's page. Resolves with the session token. */
async function relayWithCode(attacker: Computer, victim: Victim): Promise<string> {
  const order = await attacker.start()
  const { typed } = await victim.follow({ ...trap(order), asksForCode: true })
  return await attacker.finalize(order, typed)
}

/** Relays one order to a victim who only approves. */
async function relayWithoutCode(attacker: Computer, victim: Victim): Promise<string> {
  const order = await attacker.start()
  await victim.follow(trap(order))
  return await attacker.finalize(order)
}

/** Has a victim's wallet sign the text of an order that the attacker claimed. */
async function signedOnForeignPage(scene: Scene, attacker: Computer, victim: Victim) {
  const order = await attacker.start()
  const phone = new Phone(scene, places.attacker)
  await phone.claim(order.claimUrl)
  const { message } = await phone.challenge()
  return { order, phone, signature: victim.sign(message, 'https://prize.example') as string }
}

async function computersOf(scene: Scene, token: string): Promise<KnownComputer[]> {
  return (await scene.call(places.victimsComputer, '/computers', undefined, token)).computers
}

test('a computer that the attacker’s own wallet knows is a stranger to the victim’s', async () => {
  const scene = await Scene.open('known')
  const attackersWallet = new Victim(scene, { remembers: true })
  const attacker = new Computer(scene, places.attacker, newComputerKey())
  await attackersWallet.signInAt(attacker)
  expect(await reasonOf(relayWithoutCode(attacker, new Victim(scene)))).toBe('RETURN_CODE_REQUIRED')
})

test('a key that was planted under compare is not known under return', async () => {
  const folder = temporaryFolder()
  const store = `sqlite:${join(folder, 'countersign.db')}`
  const key = newComputerKey()
  const wallet = makeWallet()

  // An attacker who has the text signed on a foreign page is the phone too, and asks for what no page offers.
  const trustedOrigins = ['https://app.example']
  const before = await Scene.open('compare', { store, trustedOrigins })
  const planting = new Computer(before, places.attacker, key)
  const { order, phone, signature } = await signedOnForeignPage(before, planting, new Victim(before, {}, wallet))
  await phone.approve(wallet, signature, { rememberComputer: true })
  expect(await before.signedIn(await planting.finalize(order))).toBe(wallet.address)

  // The same pages, so that the computer would be the same.
  const after = await Scene.open('known', { store, trustedOrigins })
  const attacker = new Computer(after, places.attacker, key)
  expect(await reasonOf(relayWithoutCode(attacker, new Victim(after, {}, wallet)))).toBe('RETURN_CODE_REQUIRED')
})

test('not stopped: who sits at a known computer needs the approval only', async () => {
  const scene = await Scene.open('known')
  const victim = new Victim(scene)
  const computer = await victimsComputer(scene, victim)
  expect(await scene.signedIn(await relayWithoutCode(computer, victim))).toBe(victim.wallet.address)
})

describe('a victim who gave the code to an attacker, and let the computer be remembered', () => {
  test('is relayed again without a code', async () => {
    const scene = await Scene.open('known')
    const victim = new Victim(scene, gullible)
    const attacker = new Computer(scene, places.attacker, newComputerKey())
    await relayWithCode(attacker, victim)
    expect(await scene.signedIn(await relayWithoutCode(attacker, victim))).toBe(victim.wallet.address)
  })

  test('is safe again once the phone has taken the order back', async () => {
    const scene = await Scene.open('known')
    const victim = new Victim(scene, gullible)
    const attacker = new Computer(scene, places.attacker, newComputerKey())
    await relayWithCode(attacker, victim)
    expect(await victim.phone.reject()).toMatchObject({ sessionEnded: true })
    expect(await reasonOf(relayWithoutCode(attacker, victim))).toBe('RETURN_CODE_REQUIRED')
  })

  test('finds the computer in the list, and is safe again once it is forgotten', async () => {
    const scene = await Scene.open('known')
    const victim = new Victim(scene, gullible)
    const attacker = new Computer(scene, places.attacker, newComputerKey())
    await relayWithCode(attacker, victim)
    const token = await victim.signInAt(new Computer(scene, places.victimsComputer))
    const [listed, ...others] = await computersOf(scene, token)
    expect(others).toEqual([])
    expect(listed).toMatchObject({ ...places.attacker, current: false })
    await scene.call(places.victimsComputer, '/computers/forget', { id: listed?.id }, token)
    expect(await reasonOf(relayWithoutCode(attacker, victim))).toBe('RETURN_CODE_REQUIRED')
  })
})

test('not stopped: an attacker who has the text signed on a foreign page decides that their computer is remembered', async () => {
  const scene = await Scene.open('known')
  const victim = new Victim(scene)
  const attacker = new Computer(scene, places.attacker, newComputerKey())
  const { order, phone, signature } = await signedOnForeignPage(scene, attacker, victim)
  const { returnCode } = await phone.approve(victim.wallet, signature, { rememberComputer: true })
  const token = await attacker.finalize(order, returnCode)
  expect(await computersOf(scene, token)).toMatchObject([places.attacker])
  expect(await scene.signedIn(await relayWithoutCode(attacker, victim))).toBe(victim.wallet.address)
})

// An order that adds a wallet has no computer key, and takes the session that started it.
test.each((Object.keys(columns) as ColumnId[]).filter((column) => column !== 'link'))(
  '%s: a stolen desktop token is worth nothing if its order has a computer key',
  async (column) => {
    const scene = await Scene.open(column)
    const victim = new Victim(scene)
    const computer = new Computer(scene, places.victimsComputer, newComputerKey())
    const order = await computer.start()
    const { typed } = await victim.follow(ownScreen(scene, order))
    for (const key of [undefined, newComputerKey()]) {
      const thief = new Computer(scene, places.attacker, key)
      expect(await reasonOf(thief.finalize(order, typed))).toBe('COMPUTER_PROOF_INVALID')
    }
    expect(await scene.signedIn(await computer.finalize(order, typed))).toBe(victim.wallet.address)
  },
)
