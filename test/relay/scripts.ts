import { vi } from 'vitest'
import type { StartedOrder } from '../../src/shared/orders.ts'
import { Computer, newComputerKey, Phone } from './devices.ts'
import { type Place, places, Refused, reasonOf, type Scene } from './scene.ts'
import type { AttackerId } from './table.ts'
import { type Habits, ownScreen, type Screen, shown, type Victim, victimsComputer } from './victim.ts'

/** How an attack ends. */
export interface End {
  /** A session token that the attacker has got. */
  readonly token?: string
  /** The first refusal that the victim's phone or the attacker met. */
  readonly refusal?: string
}

/** An attack, the same whatever the service is set to. */
export interface Script {
  /** What the victim does, in cells that are hindered, beyond what people usually do. */
  readonly more: Partial<Habits>
  run(scene: Scene, victim: Victim): Promise<End>
}

const prize = 'https://prize.example'
const title = 'Claim your 100 NIM reward'

/** The computer that an attacker calls from. Where computers can become known, it brings a key of its own. */
function attackersComputer(scene: Scene, place: Place = places.attacker): Computer {
  return new Computer(scene, place, scene.column === 'known' ? newComputerKey() : undefined)
}

/** A page of the attacker's that shows an order. */
function trap(order: StartedOrder, parts: Partial<Screen>): Screen {
  return { story: title, site: prize, qrCode: order.claimUrl, asksForCode: false, ...parts }
}

/** Has the victim do what a screen asks for, and then tries to finalize, whatever the victim's phone said. */
async function relay(attacker: Computer, order: StartedOrder, victim: Victim, screen: Screen): Promise<End> {
  const { typed, refusal } = await victim.follow(screen)
  return await take(attacker, order, typed, refusal)
}

/** Tries to finalize an order. */
async function take(attacker: Computer, order: StartedOrder, code?: string, refusal?: string): Promise<End> {
  try {
    return { token: await attacker.finalize(order, code), ...(refusal === undefined ? {} : { refusal }) }
  } catch (error) {
    if (!(error instanceof Refused)) throw error
    return { refusal: refusal ?? error.reason }
  }
}

/** Shows the QR code and the digits, and asks for the code, from some place. */
async function askForCode(scene: Scene, victim: Victim, place: Place): Promise<End> {
  const attacker = attackersComputer(scene, place)
  const order = await attacker.start(title)
  return await relay(attacker, order, victim, trap(order, { ...shown(order), asksForCode: true }))
}

export const scripts: Readonly<Record<AttackerId, Script>> = {
  staticQr: {
    more: { opensMail: 'at once' },
    async run(scene, victim) {
      const attacker = attackersComputer(scene)
      const order = await attacker.start(title)
      if (victim.habits.opensMail === 'five minutes later') vi.setSystemTime(Date.now() + 300_000)
      return await relay(attacker, order, victim, trap(order, shown(order)))
    },
  },
  liveQr: {
    more: {},
    async run(scene, victim) {
      const attacker = attackersComputer(scene)
      const order = await attacker.start(title)
      return await relay(attacker, order, victim, trap(order, {}))
    },
  },
  liveQrWithCode: {
    more: {},
    async run(scene, victim) {
      const attacker = attackersComputer(scene)
      const order = await attacker.start(title)
      return await relay(attacker, order, victim, trap(order, shown(order)))
    },
  },
  asksForCode: {
    more: { typesCode: 'wherever they are asked for it' },
    run: (scene, victim) => askForCode(scene, victim, places.attacker),
  },
  foreignPage: {
    more: {},
    async run(scene, victim) {
      const attacker = attackersComputer(scene)
      const order = await attacker.start(title)
      const phone = new Phone(scene, places.attacker)
      await phone.claim(order.claimUrl)
      const { message } = await phone.challenge()
      const signature = victim.sign(message, prize)
      if (signature === undefined) return {}
      const { returnCode } = await phone.approve(victim.wallet, signature, {
        confirmationCode: order.confirmationCode || undefined,
      })
      return await take(attacker, order, returnCode)
    },
  },
  handOver: {
    more: { typesCode: 'wherever they are asked for it' },
    async run(scene, victim) {
      const attacker = attackersComputer(scene)
      const order = await attacker.start(title)
      const phone = new Phone(scene, places.attacker)
      await phone.claim(order.claimUrl)
      const link = await phone.handOver()
      const message: Screen = { story: title, site: prize, link, ...shown(order), asksForCode: true }
      const { typed, refusal } = await victim.follow(message)
      // The phone that began the order tries to read the code.
      const read = await reasonOf(phone.challenge())
      if (refusal === undefined && read !== 'ORDER_TOKEN_INVALID')
        throw new Error(`the former token could read: ${read}`)
      return await take(attacker, order, typed, refusal)
    },
  },
  sameNetwork: {
    more: { typesCode: 'wherever they are asked for it' },
    run: (scene, victim) => askForCode(scene, victim, places.neighbour),
  },
  stolenToken: {
    more: {},
    async run(scene, victim) {
      const computer = await victimsComputer(scene, victim)
      const order = await computer.start('Sign in')
      await victim.follow(ownScreen(scene, order))
      return await take(new Computer(scene, places.attacker), order)
    },
  },
}
