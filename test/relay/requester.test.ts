import { describe, expect, test } from 'vitest'
import { Computer, Phone } from './devices.ts'
import { places, reasonOf, Scene } from './scene.ts'
import { Victim } from './victim.ts'

test('the network of the computer is not what the attacker’s own X-Forwarded-For says', async () => {
  const scene = await Scene.open('proximity')
  const pretending = { ...places.attacker, ip: `${places.victimsComputer.ip}, ${places.attacker.ip}` }
  const { claimUrl } = await new Computer(scene, pretending).start()
  expect(await reasonOf(new Phone(scene, places.victimsPhone).claim(claimUrl))).toBe('NETWORK_MISMATCH')
})

describe('an attacker who claims a victim’s order and approves it with a wallet of their own', () => {
  test('compare: the victim’s computer is signed in as the attacker', async () => {
    const scene = await Scene.open('compare')
    const attacker = new Victim(scene)
    const computer = new Computer(scene, places.victimsComputer)
    const order = await computer.start()
    await attacker.follow({ story: 'a photograph', site: scene.url, qrCode: order.claimUrl, asksForCode: false })
    expect(await scene.signedIn(await computer.finalize(order))).toBe(attacker.wallet.address)
  })

  test('return: the victim’s computer asks for a code that only the attacker’s phone shows', async () => {
    const scene = await Scene.open('return')
    const attacker = new Victim(scene)
    const computer = new Computer(scene, places.victimsComputer)
    const order = await computer.start()
    await attacker.follow({ story: 'a photograph', site: scene.url, qrCode: order.claimUrl, asksForCode: false })
    expect(await computer.watch(order)).toMatchObject({ status: 'approved', returnCodeRequired: true })
    expect(await reasonOf(computer.finalize(order))).toBe('RETURN_CODE_REQUIRED')
  })
})
