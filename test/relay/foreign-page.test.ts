import { expect, test } from 'vitest'
import { Computer, Phone } from './devices.ts'
import { places, Scene } from './scene.ts'
import { Victim } from './victim.ts'

const foreignPage = 'https://prize.example'

test('the text of an order names the application, so that a wallet’s user can decline', async () => {
  const scene = await Scene.open('return')
  const careful = new Victim(scene, { signs: 'texts that name the site they are on' })
  const order = await new Computer(scene, places.attacker).start()
  const phone = new Phone(scene, places.attacker)
  await phone.claim(order.claimUrl)
  const { message } = await phone.challenge()
  expect(message).toContain(`\nOrigin: ${scene.url}\n`)
  expect(careful.sign(message, foreignPage)).toBeUndefined()
  expect(careful.sign(message, scene.url)).toBeDefined()
})

test('not stopped: the text of a direct sign-in, signed on a foreign page, signs the attacker in', async () => {
  const scene = await Scene.open('return')
  const victim = new Victim(scene)
  const { nonceId, message } = await scene.call(places.attacker, '/wallet/nonce', {})
  expect(message).toContain(`\nOrigin: ${scene.url}\n`)
  const { publicKeyHex } = victim.wallet
  const proof = { nonceId, publicKeyHex, signatureHex: victim.sign(message, foreignPage) }
  const { token } = await scene.call(places.attacker, '/wallet/verify', proof)
  expect(await scene.signedIn(token)).toBe(victim.wallet.address)
})
