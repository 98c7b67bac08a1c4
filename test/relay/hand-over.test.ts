import { describe, expect, test } from 'vitest'
import { Computer, Phone } from './devices.ts'
import { places, reasonOf, Scene } from './scene.ts'
import { shown, Victim } from './victim.ts'

/** An attacker who claimed an order and made a link that continues it. */
async function attackerWithLink() {
  const scene = await Scene.open('return')
  const attacker = new Computer(scene, places.attacker)
  const former = new Phone(scene, places.attacker)
  const order = await attacker.start()
  await former.claim(order.claimUrl)
  return { scene, attacker, former, order, link: await former.handOver() }
}

/** The same, after a victim opened the link, approved, and typed the code on the attacker's page. */
async function approvedByVictim() {
  const all = await attackerWithLink()
  const { scene, order, link } = all
  const victim = new Victim(scene, { typesCode: 'wherever they are asked for it' })
  const { typed } = await victim.follow({
    story: 'Claim your 100 NIM reward',
    site: 'https://prize.example',
    link,
    ...shown(order),
    asksForCode: true,
  })
  return { ...all, victim, typed }
}

describe('an order that the attacker handed over', () => {
  test('is the victim’s to take back', async () => {
    const { scene, victim, attacker, order, typed } = await approvedByVictim()
    const token = await attacker.finalize(order, typed)
    expect(await scene.signedIn(token)).toBe(victim.wallet.address)
    expect(await victim.phone.reject()).toMatchObject({ sessionEnded: true })
    expect(await scene.signedIn(token)).toBeUndefined()
  })

  test('shows the attacker’s former token no code, and lets it neither approve nor hand over again', async () => {
    const { victim, former } = await approvedByVictim()
    const { message, returnCode } = await victim.phone.challenge()
    expect(returnCode).toMatch(/^\d{6}$/)
    const calls = [former.challenge(), former.approve(victim.wallet, victim.wallet.sign(message)), former.handOver()]
    expect(await Promise.all(calls.map(reasonOf))).toEqual(calls.map(() => 'ORDER_TOKEN_INVALID'))
  })
})

test('the link that continues an order does nothing when it is merely opened', async () => {
  const { scene, link } = await attackerWithLink()
  const opened = await fetch(link, { headers: { 'x-forwarded-for': places.neighbour.ip } })
  await opened.text()
  await new Phone(scene, places.victimsPhone).redeem(link)
})
