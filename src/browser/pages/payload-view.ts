import { element } from './dom.ts'
import type { Words } from './texts/words.ts'

/**
 * A payload as people read it: every name and every value, as text. What stands in an object or a list is indented
 * under its name, so that no name can pass for another one's place.
 */
export function payloadView(payload: string, words: Words): HTMLElement {
  return view(JSON.parse(payload) as unknown, words)
}

function view(value: unknown, words: Words): HTMLElement {
  if (Array.isArray(value)) return listOf(value, words)
  if (typeof value === 'object' && value !== null) return tableOf(Object.entries(value), words)
  if (value === '') return element('span', 'payload-note', words.say('payload.empty'))
  // In another type than texts: the number 5 is not the text "5".
  const shown = element('span', typeof value === 'string' ? 'folding' : 'mono', String(value))
  shown.dir = 'auto'
  return shown
}

function tableOf(entries: readonly (readonly [string, unknown])[], words: Words): HTMLElement {
  if (entries.length === 0) return element('span', 'payload-note', words.say('payload.none'))
  const table = element('dl', 'payload-table')
  for (const [name, value] of entries) {
    const row = element('div', isGroup(value) ? 'payload-group' : '')
    const named = element('dt', name === '' ? 'payload-note' : '', name === '' ? words.say('payload.no-name') : name)
    named.dir = 'auto'
    const shown = element('dd', '')
    shown.append(view(value, words))
    row.append(named, shown)
    table.append(row)
  }
  return table
}

function listOf(values: readonly unknown[], words: Words): HTMLElement {
  if (values.length === 0) return element('span', 'payload-note', words.say('payload.none'))
  const list = element('ol', 'payload-list')
  for (const value of values) {
    const entry = element('li', '')
    entry.append(view(value, words))
    list.append(entry)
  }
  return list
}

function isGroup(value: unknown): boolean {
  return typeof value === 'object' && value !== null && Object.keys(value).length > 0
}
