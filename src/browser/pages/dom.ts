import { markLanguage, write as writeText } from '../client/custom-element.ts'

/** Access to the page's document. Text is inserted as text only, so that no order and no server can add markup. */

/** The element with this id. Throws if the page has none. */
export function byId<E extends HTMLElement = HTMLElement>(id: string): E {
  const element = document.getElementById(id)
  if (element === null) throw new Error(`the page has no #${id}`)
  return element as E
}

/**
 * Writes a text into the slot with this `data-slot`, and returns the slot. Hides an empty slot, and a row of facts if
 * all of its slots are empty. `exact` are parts of the text that a translation of the page must not change.
 */
export function fill(root: ParentNode, name: string, text: string | undefined, ...exact: string[]): HTMLElement {
  const slot = root.querySelector<HTMLElement>(`[data-slot="${name}"]`)
  if (slot === null) throw new Error(`the page has no slot ${name}`)
  slot.replaceChildren(...withExact(text ?? '', exact))
  markLanguage(slot, text ?? '', document.documentElement)
  slot.hidden = slot.textContent === ''
  const row = slot.closest<HTMLElement>('.facts > div')
  if (row !== null) row.hidden = [...row.querySelectorAll<HTMLElement>('[data-slot]')].every(({ hidden }) => hidden)
  return slot
}

/** A text whose exact parts, such as addresses and origins, are kept out of translations of the page. */
export function withExact(text: string, exact: readonly string[]): (string | HTMLElement)[] {
  const part = exact.find((each) => each !== '' && text.includes(each))
  if (part === undefined) return text === '' ? [] : [text]
  const at = text.indexOf(part)
  const kept = element('bdi', '', part)
  kept.translate = false
  return [...withExact(text.slice(0, at), exact), kept, ...withExact(text.slice(at + part.length), exact)]
}

/** Writes a text, with its language if English stands in for that of the page. */
export function write(place: HTMLElement, text: string): void {
  writeText(place, text, document.documentElement)
}

/** Writes the text that each element with `data-text` names. */
export function fillTexts(textOf: (key: string) => string): void {
  for (const place of document.querySelectorAll<HTMLElement>('[data-text]')) {
    write(place, textOf(place.dataset.text ?? ''))
  }
}

/** Shows one of the page's sections and moves the focus to its heading, which also makes a screen reader read it. */
export function showOnly(section: HTMLElement): void {
  for (const other of document.querySelectorAll<HTMLElement>('main > section')) other.hidden = other !== section
  section.querySelector<HTMLElement>('h1, h2')?.focus()
}

/** An element with a class and a content. */
export function element<K extends keyof HTMLElementTagNameMap>(
  name: K,
  className: string,
  ...content: readonly (string | Node)[]
): HTMLElementTagNameMap[K] {
  const made = document.createElement(name)
  if (className !== '') made.className = className
  made.append(...content)
  if (typeof content[0] === 'string' && content.length === 1) markLanguage(made, content[0], document.documentElement)
  return made
}

/** Errors of a service's settings, and those that no text was written for. */
const forOperators = /^(ORIGIN_|START_KEY_|NOT_ENABLED|INVALID_REQUEST|UNEXPECTED)/

/** Writes to the browser's console what an error says to the service's operator, such as the setting to change. */
export function noteForOperator({ code, message }: { readonly code: string; readonly message: string }): void {
  // biome-ignore lint/suspicious/noConsole: pages show users their own texts only.
  if (forOperators.test(code)) console.warn(`${code}: ${message}`)
}
