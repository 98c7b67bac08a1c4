import { element } from './dom.ts'
import type { Words } from './words.ts'

/** What a payload says, as the approval page shows it. */
export interface ReadPayload {
  readonly shown: unknown
  /** What makes the payload of an action unique, which says nothing to people. */
  readonly nonce?: string
}

/** Reads a payload. Of one that `countersign/approvals` has made around an action, the action is what it says. */
export function readPayload(payload: string): ReadPayload {
  const value = JSON.parse(payload) as unknown
  if (!isGroup(value)) return { shown: value }
  const { typ, action, nonce, ...others } = value as Record<string, unknown>
  const isAction = typ === 'countersign/action' && action !== undefined && typeof nonce === 'string'
  return isAction && Object.keys(others).length === 0 ? { shown: action, nonce } : { shown: value }
}

/** Number of values in a payload, each of which is a text to read. */
export function countValues(value: unknown): number {
  if (typeof value !== 'object' || value === null) return 1
  return Object.values(value).reduce((sum: number, each) => sum + countValues(each), 0)
}

/**
 * A value as people read it: every name and every value, as text. What stands in an object or a list is indented
 * under its name, so that no name can pass for another one's place. Names such as `dueDate` are written as labels,
 * unless two of one object would read alike.
 */
export function payloadView(value: unknown, words: Words): HTMLElement {
  if (Array.isArray(value)) return listOf(value, words)
  if (typeof value === 'object' && value !== null) return tableOf(Object.entries(value), words)
  if (value === '') return element('span', 'payload-note', words.say('payload.empty'))
  // A number as the user's language writes it, and in another type than texts: the number 5 is not the text "5".
  const text = typeof value === 'number' ? words.number(value) : String(value)
  const shown = element('span', typeof value === 'string' ? 'folding' : 'mono', text)
  shown.dir = 'auto'
  return shown
}

function tableOf(entries: readonly (readonly [string, unknown])[], words: Words): HTMLElement {
  if (entries.length === 0) return element('span', 'payload-note', words.say('payload.none'))
  const table = element('dl', 'payload-table')
  const areUnique = new Set(entries.map(([name]) => labelOf(name).toLowerCase())).size === entries.length
  const textOfName = (name: string): string => {
    if (name === '') return words.say('payload.no-name')
    return areUnique ? labelOf(name) : name
  }
  for (const [name, value] of entries) {
    const row = element('div', isGroup(value) ? 'payload-group' : '')
    const named = element('dt', name === '' ? 'payload-note' : '', textOfName(name))
    named.dir = 'auto'
    row.append(named, element('dd', '', payloadView(value, words)))
    table.append(row)
  }
  return table
}

function listOf(values: readonly unknown[], words: Words): HTMLElement {
  if (values.length === 0) return element('span', 'payload-note', words.say('payload.none'))
  return element('ol', 'payload-list', ...values.map((value) => element('li', '', payloadView(value, words))))
}

/** A name such as `dueDate` or `due_date` as a label: "Due date". Others as they are. */
function labelOf(name: string): string {
  if (!/^[A-Za-z][A-Za-z0-9]*([_-][A-Za-z0-9]+)*$/.test(name)) return name
  const words = name
    .replace(/([a-z0-9])([A-Z])(?=[a-z])/g, (_, before, letter) => `${before} ${letter.toLowerCase()}`)
    .replace(/[_-]/g, ' ')
  return words.charAt(0).toUpperCase() + words.slice(1)
}

function isGroup(value: unknown): value is object {
  return typeof value === 'object' && value !== null && Object.keys(value).length > 0
}
