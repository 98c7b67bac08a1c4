import { builtInAdapters, isBuiltIn } from '../../shared/adapters.ts'
import { shortAddress } from '../../shared/wallet-address.ts'
import type { KnownComputer, Session, UserWallet } from '../client/index.ts'
import { describeDevice } from './device.ts'
import { byId, element } from './dom.ts'
import type { Words } from './words.ts'

/** What the button of a row does. `about` is what it does that to, for screen readers. */
export interface RowAction {
  readonly text: string
  readonly about: string
  readonly act: () => void
}

/** A row of a list: what it is, more about it, and a button. */
export interface Row {
  readonly title: string
  readonly note: string
  /** The wallet whose address the title is. */
  readonly wallet?: UserWallet
  readonly action?: RowAction | undefined
}

/** Shows the rows of a section with a list; hides it if there are none. */
export function showRows(id: string, rows: readonly Row[]): void {
  const section = byId(id)
  section.hidden = rows.length === 0
  section.querySelector('[data-rows]')?.replaceChildren(...rows.map(rowElement))
}

function rowElement({ title, note, wallet, action }: Row): HTMLElement {
  const heading = element('p', 'strong', wallet === undefined ? title : kindOf(wallet))
  const item = element('li', 'row', element('div', 'grow', heading, element('p', '', note)))
  if (wallet !== undefined) {
    const address = element('bdi', 'mono', title)
    address.translate = false
    address.title = wallet.address
    heading.append(' ', address)
    const icon = element('span', 'kind', kindOf(wallet).slice(0, 1))
    icon.dataset.kind = wallet.adapterId
    icon.ariaHidden = 'true'
    item.prepend(icon)
  }
  if (action === undefined) return item
  const button = element('button', 'button plain small', action.text)
  button.type = 'button'
  button.setAttribute('aria-label', `${action.text}: ${action.about}`)
  button.addEventListener('click', action.act)
  item.append(button)
  return item
}

/** The row of a session. `end` ends it; absent if that is not to be offered. */
export function sessionRow({ userAgent, createdAt, current }: Session, words: Words, end?: () => void): Row {
  const title = describeDevice(userAgent, words)
  const about = words.say('account.since', { time: words.moment(createdAt) })
  const note = current ? `${about} · ${words.say('account.this-device')}` : about
  const action = end && { text: words.say('account.end'), about: title, act: end }
  return { title, note, action }
}

/** The row of a known computer. */
export function computerRow({ userAgent, lastUsedAt, current }: KnownComputer, words: Words, forget: () => void): Row {
  const title = describeDevice(userAgent, words)
  const used = words.say('account.used', { time: words.moment(lastUsedAt) })
  const note = current ? `${used} · ${words.say('account.this-computer')}` : used
  return { title, note, action: { text: words.say('account.forget'), about: title, act: forget } }
}

/** The row of a wallet. `remove` removes it; absent if that is not to be offered. */
export function walletRow(wallet: UserWallet, words: Words, remove?: () => void): Row {
  const title = shortAddress(wallet.address)
  const since = words.say('account.since', { time: words.moment(wallet.linkedAt) })
  const note = wallet.current ? `${since} · ${words.say('account.this-wallet')}` : since
  const action = remove && { text: words.say('account.remove'), about: title, act: remove }
  return { title, note, wallet, action }
}

function kindOf({ adapterId }: UserWallet): string {
  return isBuiltIn(adapterId) ? builtInAdapters[adapterId].name : adapterId
}
