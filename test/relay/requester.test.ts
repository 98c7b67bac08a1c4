import { describe, expect, test } from 'vitest'
import { Computer, Phone } from './devices.ts'
import { Backend, places, reasonOf, Scene } from './scene.ts'
import { Victim } from './victim.ts'

const forged = 'Claim your 100 NIM reward'

async function challengeOf(scene: Scene, computer: Computer, title?: string) {
  const phone = new Phone(scene, places.victimsPhone)
  await phone.claim((await computer.start(title)).claimUrl)
  return await phone.challenge()
}

describe('who starts an order', () => {
  test('without start keys: anyone who sends a trusted Origin header, with a title of their own', async () => {
    const scene = await Scene.open('compare')
    expect(await challengeOf(scene, new Computer(scene, places.attacker), forged)).toMatchObject({
      displayTitle: forged,
      requester: { origin: scene.url, ...places.attacker, startedWithKey: false },
    })
  })

  test('with start keys: the application’s backend, which writes the title and tells whose computer it is for', async () => {
    const scene = await Scene.open('startKeys')
    const attacker = new Computer(scene, places.attacker)
    expect(await reasonOf(attacker.startAlone(forged))).toBe('START_KEY_REQUIRED')
    expect(await challengeOf(scene, attacker, forged)).toMatchObject({
      displayTitle: Backend.title,
      requester: { origin: scene.url, ...places.attacker, startedWithKey: true },
    })
  })
})

describe('the network of the computer', () => {
  test('is told to the phone: another one if the attacker is elsewhere, the same one if not', async () => {
    const scene = await Scene.open('compare')
    const told = async (place: { readonly ip: string; readonly userAgent: string }) =>
      (await challengeOf(scene, new Computer(scene, place))).requester.sameNetwork
    expect(await told(places.attacker)).toBe(false)
    expect(await told(places.victimsComputer)).toBe(true)
    expect(await told(places.neighbour)).toBe(true)
  })

  test('is not what the attacker’s own X-Forwarded-For says', async () => {
    const scene = await Scene.open('proximity')
    const pretending = { ...places.attacker, ip: `${places.victimsComputer.ip}, ${places.attacker.ip}` }
    expect(await reasonOf(challengeOf(scene, new Computer(scene, pretending)))).toBe('NETWORK_MISMATCH')
  })

  test('must be the phone’s, if that is enforced, which locks out an honest phone on mobile data', async () => {
    const scene = await Scene.open('proximity')
    const onMobileData = new Phone(scene, { ip: '192.0.2.9', userAgent: 'Phone/1.0' })
    const order = await new Computer(scene, places.victimsComputer).start()
    expect(await reasonOf(onMobileData.claim(order.claimUrl))).toBe('NETWORK_MISMATCH')
  })

  test('is compared again when the phone approves', async () => {
    const scene = await Scene.open('proximity')
    const place: { ip: string; userAgent: string } = { ...places.victimsPhone }
    const phone = new Phone(scene, place)
    await phone.claim((await new Computer(scene, places.victimsComputer).start()).claimUrl)
    const { message } = await phone.challenge()
    place.ip = places.attacker.ip
    const { wallet } = new Victim(scene)
    expect(await reasonOf(phone.approve(wallet, wallet.sign(message)))).toBe('NETWORK_MISMATCH')
  })
})

describe('a sign order that names its wallet', () => {
  test('is approved by that wallet, and by no other', async () => {
    const scene = await Scene.open('compare')
    const [owner, other] = [new Victim(scene).wallet, new Victim(scene).wallet]
    const { claimUrl } = await scene.call(places.victimsComputer, '/cross-device/start', {
      kind: 'sign',
      adapterId: 'nimiq',
      expectedAddress: owner.address,
    })
    const phone = new Phone(scene, places.victimsPhone)
    await phone.claim(claimUrl)
    const { message, expectedAddress } = await phone.challenge()
    expect(expectedAddress).toBe(owner.address)
    expect(await reasonOf(phone.approve(other, other.sign(message)))).toBe('WRONG_WALLET')
    expect(await phone.approve(owner, owner.sign(message))).toMatchObject({ status: 'approved' })
  })
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
