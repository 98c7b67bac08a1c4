import { isLoopbackHost } from '../../shared/origin.ts'
import { isSmallTouchScreen } from './device.ts'
import { element } from './dom.ts'
import type { Words } from './words.ts'

/**
 * Notes under the code of an order, by the device and the code's address: how to make that address reachable for
 * phones, a link that can be selected, and on a phone a link in place of the code, because a phone cannot scan its own
 * screen.
 */
export class ClaimNotes {
  /** The notes. Hidden unless there is a code. */
  readonly root: HTMLElement = element('div', 'claim-notes')
  readonly #words: Words
  readonly #lanCommand: string | undefined
  readonly #onPhone = isSmallTouchScreen()

  /** `lanCommand`: the command with which a page's developer makes it reachable for phones. */
  constructor(words: Words, lanCommand?: string) {
    this.#words = words
    this.#lanCommand = lanCommand
    this.hide()
  }

  /** Shows what there is to say of the code with this claim URL. */
  show(claimUrl: string): void {
    const { hostname } = new URL(claimUrl)
    const notes: Node[] = []
    const words = this.#words
    if (this.#onPhone) notes.push(openHere(claimUrl, words), element('p', 'hint', words.say('sign-in.open-here.hint')))
    else if (isLoopbackHost(hostname) && this.#lanCommand !== undefined) {
      notes.push(element('p', 'hint', ...howToReach(this.#lanCommand, words)))
    }
    // Browsers offer the clipboard on https and localhost only.
    if (!('clipboard' in navigator)) notes.push(selectable(claimUrl, words))
    this.root.replaceChildren(...notes)
    this.root.hidden = notes.length === 0
  }

  /** Hides the notes, which have a secret in them. */
  hide(): void {
    this.root.replaceChildren()
    this.root.hidden = true
  }
}

function openHere(claimUrl: string, words: Words): HTMLElement {
  const link = element('a', 'button primary', words.say('sign-in.open-here'))
  return Object.assign(link, { href: claimUrl, target: '_blank', rel: 'noopener' })
}

/** The sentence with the command that makes a page reachable for phones. */
export function howToReach(command: string, words: Words): (string | HTMLElement)[] {
  const [before = '', after = ''] = words.say('sign-in.lan', { command }).split(command)
  const code = element('code', '', command)
  code.translate = false
  return [before, code, after]
}

function selectable(claimUrl: string, words: Words): HTMLElement {
  const field = Object.assign(element('input', ''), { readOnly: true, dir: 'ltr', value: claimUrl })
  field.addEventListener('focus', () => field.select())
  return element('label', 'claim-link', words.say('sign-in.link'), field)
}
