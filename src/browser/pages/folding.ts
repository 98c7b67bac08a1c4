import { element } from './dom.ts'
import type { Words } from './words.ts'

/**
 * Gives each long text in `root` that is cut off a button that shows all of it. Call it whenever texts or their width
 * change.
 */
export function foldLongTexts(root: HTMLElement, words: Words): void {
  for (const text of root.querySelectorAll<HTMLElement>('.folding')) {
    const button = text.nextElementSibling
    const isOpen = button?.getAttribute('aria-expanded') === 'true'
    if (isOpen) continue
    const isCut = text.scrollHeight > text.clientHeight + 1
    if (isCut && button?.className !== 'unfold') text.after(unfoldButton(text, words))
    if (!isCut && button?.className === 'unfold') button.remove()
  }
}

function unfoldButton(text: HTMLElement, words: Words): HTMLButtonElement {
  const button = element('button', 'unfold', words.say('review.more'))
  button.type = 'button'
  button.setAttribute('aria-expanded', 'false')
  button.addEventListener('click', () => {
    const open = text.toggleAttribute('data-open')
    button.setAttribute('aria-expanded', String(open))
    button.textContent = words.say(open ? 'review.less' : 'review.more')
  })
  return button
}
