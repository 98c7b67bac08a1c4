/** What the pages' scripts do to their documents. Text goes in as text only: no order and no server can add markup. */

/** The element with this id. The pages' HTML has it, or the page is broken. */
export function byId<E extends HTMLElement = HTMLElement>(id: string): E {
  const element = document.getElementById(id)
  if (element === null) throw new Error(`the page has no #${id}`)
  return element as E
}

/** Writes a text into a slot, `data-slot`. An empty slot is hidden, and so is the row of facts that has nothing else to say. */
export function fill(root: ParentNode, name: string, text: string | undefined): void {
  const slot = root.querySelector<HTMLElement>(`[data-slot="${name}"]`)
  if (slot === null) throw new Error(`the page has no slot ${name}`)
  slot.textContent = text ?? ''
  slot.hidden = slot.textContent === ''
  const row = slot.closest<HTMLElement>('.facts > div')
  if (row !== null) row.hidden = [...row.querySelectorAll<HTMLElement>('[data-slot]')].every(({ hidden }) => hidden)
}

/** Shows one of several sections and moves the focus, and with it a screen reader, to its heading. */
export function showOnly(section: HTMLElement, sections: readonly HTMLElement[]): void {
  for (const other of sections) other.hidden = other !== section
  section.querySelector<HTMLElement>('h1, h2')?.focus()
}

/** An element with a class and a text. */
export function element<K extends keyof HTMLElementTagNameMap>(
  name: K,
  className: string,
  text = '',
): HTMLElementTagNameMap[K] {
  const made = document.createElement(name)
  if (className !== '') made.className = className
  made.textContent = text
  return made
}

/** The content of a `<meta>` that the server filled in. */
export function metaContent(name: string): string {
  return document.querySelector<HTMLMetaElement>(`meta[name="${name}"]`)?.content ?? ''
}
