import { makeWallet, type TestWallet } from '../support/wallet.ts'
import { Computer, newComputerKey, Phone } from './devices.ts'
import { places, reasonOf, type Scene } from './scene.ts'

/** A screen that a person looks at, or a message that they read. */
export interface Screen {
  /** What it says. */
  readonly story: string
  /** Site that they believe it to be of. */
  readonly site: string
  /** Claim URL, as a QR code. */
  readonly qrCode?: string
  /** A link to open on the phone. */
  readonly link?: string
  /** Digits beside the QR code. */
  readonly digits?: string
  /** Whether there is a field for a code. */
  readonly asksForCode: boolean
}

/** What differs between one person and another. */
export interface Habits {
  /** When they open a mail. */
  readonly opensMail: 'at once' | 'five minutes later'
  /** Where they type a code that their phone shows. */
  readonly typesCode: 'at the site that the phone names' | 'wherever they are asked for it'
  /** Which texts they let their wallet sign. */
  readonly signs: 'any text' | 'texts that name the site they are on'
  /** Whether they let a computer be remembered if the phone offers it. */
  readonly remembers: boolean
}

const usualHabits: Habits = {
  opensMail: 'five minutes later',
  typesCode: 'at the site that the phone names',
  signs: 'any text',
  remembers: false,
}

/**
 * A person with a phone and a wallet, who does what the pages say: scans what they are shown, enters digits that the
 * phone asks for if they see any, declines if two digits differ, and approves.
 */
export class Victim {
  readonly wallet: TestWallet
  readonly phone: Phone
  readonly habits: Habits
  readonly #scene: Scene

  constructor(scene: Scene, habits: Partial<Habits> = {}, wallet: TestWallet = makeWallet()) {
    this.#scene = scene
    this.wallet = wallet
    this.habits = { ...usualHabits, ...habits }
    this.phone = new Phone(scene, places.victimsPhone)
  }

  /**
   * Does what a screen asks for. Resolves with the code that they typed on it, or with what their phone was refused
   * with.
   */
  async follow(screen: Screen): Promise<{ readonly typed?: string; readonly refusal?: string }> {
    let typed: string | undefined
    const refusal = await reasonOf(
      (async () => {
        typed = await this.#approve(screen)
      })(),
    )
    return { ...(typed === undefined ? {} : { typed }), ...(refusal === undefined ? {} : { refusal }) }
  }

  async #approve({ site, qrCode, link, digits, asksForCode }: Screen): Promise<string | undefined> {
    if (qrCode !== undefined) await this.phone.claim(qrCode)
    if (link !== undefined) await this.phone.redeem(link)
    const challenge = await this.phone.challenge()
    const { confirmationCode: expected } = challenge
    if (expected !== undefined && digits !== undefined && expected !== digits) {
      await this.phone.reject()
      return undefined
    }
    const { returnCode } = await this.phone.approve(this.wallet, this.wallet.sign(challenge.message), {
      rememberComputer: this.habits.remembers && challenge.canRememberComputer,
    })
    const types = this.habits.typesCode === 'wherever they are asked for it' || site === challenge.origin
    return asksForCode && types ? returnCode : undefined
  }

  /** Lets the wallet sign a text that a page shows. `undefined` if they see reason not to. */
  sign(text: string, site: string): string | undefined {
    if (this.habits.signs === 'texts that name the site they are on' && !text.includes(`Origin: ${site}\n`))
      return undefined
    return this.wallet.sign(text)
  }

  /** Signs in at a computer of their own, as the application means it. Resolves with the session token. */
  async signInAt(computer: Computer): Promise<string> {
    const order = await computer.start('Sign in')
    const { typed, refusal } = await this.follow(ownScreen(this.#scene, order))
    if (refusal !== undefined) throw new Error(`refused: ${refusal}`)
    return await computer.finalize(order, typed)
  }
}

/** The application's own page, which shows an order. */
export function ownScreen(
  scene: Scene,
  order: { readonly claimUrl: string; readonly confirmationCode: string },
): Screen {
  return {
    story: 'Scan this code to sign in',
    site: scene.url,
    qrCode: order.claimUrl,
    ...shown(order),
    asksForCode: true,
  }
}

/** The digits of an order, if it has any. */
export function shown({ confirmationCode }: { readonly confirmationCode: string }): Pick<Screen, 'digits'> {
  return confirmationCode === '' ? {} : { digits: confirmationCode }
}

/** A computer of the victim's. With known computers, it has a key and has become known. */
export async function victimsComputer(scene: Scene, victim: Victim): Promise<Computer> {
  if (scene.column !== 'known') return new Computer(scene, places.victimsComputer)
  const computer = new Computer(scene, places.victimsComputer, newComputerKey())
  const remembering = new Victim(scene, { remembers: true }, victim.wallet)
  await remembering.signInAt(computer)
  return computer
}
