/** What custom elements have in common. */

/** Without a DOM a module with an element still loads, for servers that render pages. */
export const Base = (globalThis.HTMLElement ?? class {}) as typeof HTMLElement

/** Registers an element under its name, unless the name is taken, as by another copy of the code. */
export function define(name: string, element: CustomElementConstructor): void {
  if (globalThis.customElements?.get(name) === undefined) globalThis.customElements?.define(name, element)
}

/** Moves properties that were set before the element was defined to its class's setters, which they would hide. */
export function adoptProperties(element: HTMLElement): void {
  for (const [name, value] of Object.entries(element)) {
    if (!(name in Object.getPrototypeOf(element))) continue
    Reflect.deleteProperty(element, name)
    Reflect.set(element, name, value)
  }
}

/**
 * Gives an element's class properties with the given values at first. `changed` is called with the element each time
 * that one is set. The class declares their types.
 */
export function watchProperties<Element extends HTMLElement>(
  { prototype }: { readonly prototype: Element },
  atFirst: Partial<Element>,
  changed: (element: Element) => void,
): void {
  for (const [name, value] of Object.entries(atFirst)) {
    const values = new WeakMap<Element, unknown>()
    Object.defineProperty(prototype, name, {
      configurable: true,
      get(this: Element) {
        return values.has(this) ? values.get(this) : value
      },
      set(this: Element, next) {
        values.set(this, next)
        changed(this)
      },
    })
  }
}

/** Dispatches an event of the element's own, which also leaves the shadow roots that the element is in. */
export function dispatch<Name extends keyof HTMLElementEventMap>(
  element: HTMLElement,
  name: Name,
  detail: HTMLElementEventMap[Name] extends CustomEvent<infer Detail> ? Detail : never,
): void {
  element.dispatchEvent(new CustomEvent(name, { detail, bubbles: true, composed: true }))
}

/** Attaches a shadow root with a constructed style sheet: a Content-Security-Policy without inline styles allows it. */
export function attachStyledRoot(host: HTMLElement, style: string): ShadowRoot {
  const root = host.attachShadow({ mode: 'open' })
  const sheet = new CSSStyleSheet()
  sheet.replaceSync(style)
  root.adoptedStyleSheets = [sheet]
  return root
}

/** Texts that are English: elements add their own, and pages those that stand in for another language's. */
export const english = new Set<string>()

/** Writes a text if it is another one, because screen readers read each text that is written into a status. */
export function write(place: HTMLElement, text: string, host: Element): void {
  if (place.textContent !== text) place.textContent = text
  markLanguage(place, text, host)
}

/** Names the language of a text where English stands in for that of the page around `host`. */
export function markLanguage(place: HTMLElement, text: string, host: Element): void {
  const language = host.closest('[lang]')?.getAttribute('lang') || 'en'
  if (english.has(text) && !/^en\b/i.test(language)) place.lang = 'en'
  else place.removeAttribute('lang')
}

/** An element that pages can style by the name of its part. */
export function part<Name extends keyof HTMLElementTagNameMap>(name: Name, label: string): HTMLElementTagNameMap[Name] {
  const element = document.createElement(name)
  element.setAttribute('part', label)
  return element
}
