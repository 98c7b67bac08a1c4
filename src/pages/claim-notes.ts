import { isLoopbackHost } from '../origin.ts'
import { isSmallTouchScreen } from './device.ts'
import { element } from './dom.ts'

/**
 * What stands under the code of an order, as far as the device and the code's address ask for it: that no phone can reach that
 * address, a link that can be selected, and on a phone a link in place of the code, which it could not scan on its own screen.
 */
export class ClaimNotes {
  /** The notes. Hidden unless there is a code. */
  readonly root: HTMLElement = element('div', 'claim-notes')
  readonly #onPhone = isSmallTouchScreen()

  constructor() {
    this.hide()
  }

  /** Shows what there is to say of the code with this claim URL. */
  show(claimUrl: string): void {
    const { hostname } = new URL(claimUrl)
    const notes: Node[] = []
    if (this.#onPhone)
      notes.push(openHere(claimUrl), element('p', 'hint', 'In a new tab. Come back to this one afterwards.'))
    else if (isLoopbackHost(hostname)) notes.push(thisComputerOnly(hostname))
    // Browsers offer the clipboard on https and localhost only.
    if (!('clipboard' in navigator)) notes.push(selectable(claimUrl))
    this.root.replaceChildren(...notes)
    this.root.hidden = notes.length === 0
  }

  /** Hides the notes, which have a secret in them. */
  hide(): void {
    this.root.replaceChildren()
    this.root.hidden = true
  }
}

function openHere(claimUrl: string): HTMLElement {
  const link = element('a', 'button primary', 'Open here')
  link.href = claimUrl
  link.target = '_blank'
  link.rel = 'noopener'
  return link
}

function thisComputerOnly(hostname: string): HTMLElement {
  const note = element(
    'p',
    'hint',
    `This code works on this computer only, because it leads to ${hostname}. For a phone, start with `,
  )
  note.append(element('code', '', 'npm start -- --lan'))
  return note
}

function selectable(claimUrl: string): HTMLElement {
  const label = element('label', 'claim-link', 'The code’s link, to copy')
  const field = element('input', '')
  field.readOnly = true
  field.dir = 'ltr'
  field.value = claimUrl
  field.addEventListener('focus', () => field.select())
  label.append(field)
  return label
}
