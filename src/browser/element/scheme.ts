/**
 * Gives a part of the element the colour scheme of the background behind the element: many pages are dark without a
 * `color-scheme` that says so.
 */
export function followBackground(host: Element, card: HTMLElement): void {
  const brightness = brightnessBehind(host, card)
  // Without a background, what is behind is the page's canvas, which its color-scheme decides.
  card.style.colorScheme = brightness === undefined ? '' : brightness < 0.5 ? 'dark' : 'light'
}

/** Brightness of the nearest opaque background, 0 to 1. */
function brightnessBehind(host: Element, card: HTMLElement): number | undefined {
  for (let element: Element | null = host; element !== null; element = parentOf(element)) {
    const { backgroundColor } = getComputedStyle(element)
    // A mix has the form `color(srgb r g b / a)`, with a page's colour in any form.
    card.style.outlineColor = `color-mix(in srgb, ${backgroundColor}, ${backgroundColor})`
    const mixed = getComputedStyle(card).outlineColor
    card.style.outlineColor = ''
    const [red = 0, green = 0, blue = 0, opacity = 1] = (mixed.match(/-?[\d.]+(e-?\d+)?/g) ?? []).map(Number)
    if (opacity >= 0.5) return 0.299 * red + 0.587 * green + 0.114 * blue
  }
  return undefined
}

function parentOf(element: Element): Element | null {
  if (element.assignedSlot !== null) return element.assignedSlot
  const parent = element.parentNode
  return parent instanceof ShadowRoot ? parent.host : element.parentElement
}
