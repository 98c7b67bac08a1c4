import { builtInAdapters, isBuiltIn } from '../../shared/adapters.ts'
import { shortAddress } from '../../shared/wallet-address.ts'
import { element } from './dom.ts'
import type { Words } from './words.ts'

/** A wallet's account, as far as a page knows it. */
export interface Who {
  /** The kind of the wallet; absent if only the address is known. */
  readonly adapterId?: string | undefined
  /** Absent if the wallet has not named it, as before it signs. */
  readonly address?: string | undefined
  /** Name of the wallet. Default: the name of its kind. */
  readonly name?: string | undefined
  /** Address of the wallet's own picture. Default: the mark of its kind. */
  readonly icon?: string | undefined
}

/**
 * Whose account it is, in one row that looks the same on every page: the mark of the wallet's kind, its name, the short
 * address, and a button that shows the whole address and copies it, because a touch screen has no tooltips. Browsers
 * offer the clipboard on https and localhost only; elsewhere the whole address can be selected. The page's style sheet
 * imports `style/who.css`.
 */
export function whoView({ adapterId, address, icon, name = adapterId && nameOfKind(adapterId) }: Who, words: Words) {
  const root = element('div', 'who')
  // In an `<img>`, no image runs scripts.
  if (icon !== undefined) root.append(Object.assign(new Image(36, 36), { alt: '', src: icon, className: 'kind' }))
  else if (adapterId !== undefined) root.append(markOfKind(adapterId))
  const text = element('p', '', ...(name === undefined ? [] : [element('span', 'strong', name)]))
  root.append(text)
  if (address === undefined) return root
  const shown = element('bdi', 'mono', shortAddress(address))
  shown.translate = false
  shown.dir = 'ltr'
  shown.title = address
  text.append(' ', shown)
  const copied = element('span', 'spoken')
  copied.role = 'status'
  const button = element('button', 'copy glyph')
  button.type = 'button'
  button.ariaLabel = words.say('task.copy-address')
  button.addEventListener('click', () => {
    shown.textContent = address
    void navigator.clipboard?.writeText(address).then(
      () => {
        button.toggleAttribute('data-done', true)
        copied.textContent = words.say('task.address-copied')
      },
      () => {},
    )
  })
  root.append(button, copied)
  return root
}

/**
 * A button that copies a wallet as the people file has it, for the operator, and then says so. None without a
 * clipboard, which browsers offer on https and localhost only.
 */
export function copyButton(wallet: string, text: string, copied: string): readonly HTMLElement[] {
  if (!('clipboard' in navigator)) return []
  const button = element('button', '', text)
  button.type = 'button'
  const say = (): void => {
    button.textContent = copied
  }
  button.addEventListener('click', () => void navigator.clipboard.writeText(wallet).then(say, () => {}))
  return [button]
}

/** The name of a kind of wallet, such as "Nimiq"; its id if it is not a built-in one. */
export function nameOfKind(adapterId: string): string {
  return isBuiltIn(adapterId) ? builtInAdapters[adapterId].name : adapterId
}

/** The mark of a kind of wallet: its picture, or the first letter of its name. */
export function markOfKind(adapterId: string): HTMLElement {
  const mark = element('span', 'kind', nameOfKind(adapterId).slice(0, 1))
  mark.dataset.kind = adapterId
  mark.ariaHidden = 'true'
  return mark
}
