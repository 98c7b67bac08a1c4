import type { UserWallet } from '../client/index.ts'
import { kindOfDevice } from './device.ts'
import { byId, element } from './dom.ts'
import { whoView } from './who.ts'
import type { Words } from './words.ts'

/** A row of a list: what it is, more about it, and a button. */
export interface Row {
  readonly title: string
  readonly note: string
  /** The wallet that the row is about. */
  readonly wallet?: UserWallet
  /** The device that the row is about. */
  readonly userAgent?: string
  readonly action?: RowAction | undefined
}

/** What the button of a row does. */
export interface RowAction {
  readonly text: string
  readonly act: () => void
  /** What is asked before that. Default: nothing. */
  readonly question?: string
}

/** Shows the rows of a section with a list; hides it if there are none. */
export function showRows(id: string, rows: readonly Row[], words: Words): void {
  const section = byId(id)
  section.hidden = rows.length === 0
  section.querySelector('[data-rows]')?.replaceChildren(...rows.map((row) => rowElement(row, words)))
}

function rowElement({ title, note, wallet, userAgent, action }: Row, words: Words): HTMLElement {
  const item = element('li', 'row')
  if (wallet === undefined) {
    const about = element('p', '', element('span', 'strong', title), element('span', 'hint', note))
    item.append(element('div', 'grow', about))
  } else {
    const row = whoView({ ...wallet, name: title }, words)
    row.querySelector('p')?.append(element('span', 'hint', note))
    item.append(row)
  }
  if (userAgent !== undefined) {
    const mark = element('span', 'kind glyph')
    mark.dataset.device = kindOfDevice(userAgent)
    item.prepend(mark)
  }
  if (action === undefined) return item
  const button = element('button', 'button plain small', action.text)
  button.type = 'button'
  button.ariaLabel = `${action.text}: ${title}`
  button.addEventListener('click', () => (action.question === undefined ? action.act() : ask(button, action, words)))
  item.append(button)
  return item
}

/** Asks in the place of a button that cannot be undone, before it does what it is for. Escape keeps all as it is. */
export function ask(button: HTMLElement, { text, act, question = '' }: RowAction, words: Words): void {
  const yes = element('button', 'button small', text)
  const no = element('button', 'button plain small', words.say('account.keep'))
  const group = element('div', 'ask row', element('p', 'strong', question), yes, no)
  const leave = (): void => {
    group.remove()
    button.hidden = false
    button.focus()
  }
  group.role = 'group'
  group.ariaLabel = question
  for (const answer of [yes, no]) answer.type = 'button'
  yes.addEventListener('click', act)
  no.addEventListener('click', leave)
  group.addEventListener('keydown', ({ key }) => key === 'Escape' && leave())
  button.hidden = true
  button.after(group)
  no.focus()
}
