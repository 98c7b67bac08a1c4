import type { KnownComputer, Session } from '../client/index.ts'
import { describeDevice } from './device.ts'
import { element } from './dom.ts'
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
  /** Whether the title is an address. */
  readonly isCode?: boolean
  readonly action?: RowAction | undefined
}

export function rowElement({ title, note, isCode = false, action }: Row): HTMLElement {
  const item = element('li', 'row')
  const text = element('div', 'grow')
  const heading = element('p', isCode ? 'strong mono' : 'strong', title)
  if (isCode) heading.dir = 'ltr'
  text.append(heading, element('p', '', note))
  item.append(text)
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
