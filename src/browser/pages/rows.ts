import type { UserWallet } from '../client/index.ts'
import { byId, element } from './dom.ts'
import { markOfKind, nameOfKind } from './who.ts'

/** A row of a list: what it is, more about it, and a button. */
export interface Row {
  readonly title: string
  readonly note: string
  /** The wallet whose address the title is. */
  readonly wallet?: UserWallet
  readonly action?: { readonly text: string; readonly act: () => void } | undefined
}

/** Shows the rows of a section with a list; hides it if there are none. */
export function showRows(id: string, rows: readonly Row[]): void {
  const section = byId(id)
  section.hidden = rows.length === 0
  section.querySelector('[data-rows]')?.replaceChildren(...rows.map(rowElement))
}

function rowElement({ title, note, wallet, action }: Row): HTMLElement {
  const heading = element('p', 'strong', wallet === undefined ? title : nameOfKind(wallet.adapterId))
  const item = element('li', 'row', element('div', 'grow', heading, element('p', '', note)))
  if (wallet !== undefined) {
    const address = element('bdi', 'mono', title)
    address.translate = false
    address.title = wallet.address
    heading.append(' ', address)
    item.prepend(markOfKind(wallet.adapterId))
  }
  if (action === undefined) return item
  const button = element('button', 'button plain small', action.text)
  button.type = 'button'
  button.setAttribute('aria-label', `${action.text}: ${title}`)
  button.addEventListener('click', action.act)
  item.append(button)
  return item
}
