import type { Page } from 'playwright-core'

/** What a wallet's user does when it asks: signs, declines, closes its window, or lets it wait. */
export type Answer = 'sign' | 'decline' | 'close' | 'wait'

/** A wallet that is put into the pages of a context, as an extension does it. What its user does is up to the test. */
export abstract class InjectedWallet {
  /** The name that pages show. */
  readonly name: string
  /** What the user does when asked to connect, and when asked to sign. */
  connects: Answer = 'sign'
  signs: Answer = 'sign'
  /** Texts that the wallet was asked to sign. */
  readonly asked: string[] = []
  /** Whether it has signed anything. */
  hasSigned = false
  #release = (): void => {}

  constructor(name: string) {
    this.name = name
  }

  abstract get address(): string

  /** Changes to another account without telling the page. */
  abstract changeAccount(page: Page): Promise<void>

  /** Changes to another account, as its user does in the wallet, and tells the page. */
  abstract switchAccount(page: Page): Promise<void>

  /** Signs what it has let wait. */
  release(): void {
    this.#release()
  }

  /** Does what the user does. Throws what wallets throw if that is not to sign. */
  protected async answer(answer: Answer): Promise<void> {
    if (answer === 'decline') throw { code: 4001, message: 'User rejected the request.' }
    if (answer === 'close') throw { message: 'Popup closed' }
    if (answer !== 'wait') return
    await new Promise<void>((resolve) => {
      this.#release = resolve
    })
  }
}

/**
 * Answers a call of the page with what the wallet returns or throws, since bindings of the browser lose the fields of
 * errors.
 */
export async function settled<T>(answer: Promise<T>): Promise<{ result: T } | { error: unknown }> {
  try {
    return { result: await answer }
  } catch (error) {
    return { error }
  }
}
