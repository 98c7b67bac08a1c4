import { expect, test } from 'vitest'
import type { StartedOrder } from '../../src/shared/orders.ts'
import { Computer } from './devices.ts'
import { places, reasonOf, Scene } from './scene.ts'
import { Victim } from './victim.ts'

/** An attacker whose order a victim has approved, and the code that the victim's phone shows. */
async function approvedOrder() {
  const scene = await Scene.open('return')
  const victim = new Victim(scene)
  const attacker = new Computer(scene, places.attacker)
  const order: StartedOrder = await attacker.start()
  await victim.follow({ story: 'a prize', site: 'https://prize.example', qrCode: order.claimUrl, asksForCode: false })
  const { returnCode } = await victim.phone.challenge()
  return { scene, victim, attacker, order, returnCode: returnCode as string }
}

/** Another code than the right one. */
const wrong = (code: string, by: number): string => String((Number(code) + by) % 1_000_000).padStart(6, '0')

test('an attacker has three guesses, and then the order is over', async () => {
  const { attacker, order, returnCode } = await approvedOrder()
  const guesses = [wrong(returnCode, 1), wrong(returnCode, 2), wrong(returnCode, 3)]
  for (const guess of guesses) expect(await reasonOf(attacker.finalize(order, guess))).toBe('RETURN_CODE_WRONG')
  expect(await reasonOf(attacker.finalize(order, returnCode))).toBe('ORDER_REJECTED')
})

test('guesses at the same time are counted alike', async () => {
  const { attacker, order, returnCode } = await approvedOrder()
  const guesses = Array.from({ length: 20 }, (_, index) => attacker.finalize(order, wrong(returnCode, index + 1)))
  const reasons = await Promise.all(guesses.map(reasonOf))
  expect(reasons.filter((reason) => reason === 'RETURN_CODE_WRONG')).toHaveLength(3)
  expect(reasons.filter((reason) => reason === 'ORDER_REJECTED')).toHaveLength(17)
})
