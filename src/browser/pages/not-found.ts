import type { Refusal } from '../../shared/page-values.ts'
import { notFoundTexts } from '../../shared/texts/pages.ts'
import { byId, element, fill } from './dom.ts'
import { openPage } from './open-page.ts'
import { copyButton, whoView } from './who.ts'

/**
 * The page at an address that has none for this visitor: the service has none there, or forward auth refuses the
 * visitor, and then the page says why and what to do.
 */

const { words, values } = await openPage<'not-found'>(notFoundTexts, { title: 'not-found.title', readsLocales: true })
const { appName: app, refusal } = values
const section = byId('not-found')

if (refusal === undefined) {
  fill(section, 'text', words.say('not-found.text', { host: location.host }), location.host)
  offer(link(words.say('not-found.button'), '/'))
} else {
  showRefusal(refusal)
}
section.hidden = false
document.body.toggleAttribute('data-waiting', false)

function showRefusal({ reason, groups = [], wallet, signIn }: Refusal): void {
  const isSignedOut = /^SESSION_/.test(reason)
  const title = words.say(isSignedOut ? 'refused.signed-out.title' : 'refused.title')
  document.title = `${title} · ${app}`
  fill(section, 'title', title)
  if (reason === 'GROUP_REQUIRED' && wallet !== undefined) {
    const list = new Intl.ListFormat(words.language, { type: 'disjunction' }).format(groups)
    fill(section, 'text', words.say('refused.group', { app, groups: list }), ...groups)
    byId('who').replaceChildren(whoView(wallet, words))
    byId('who').hidden = false
    fill(section, 'hint', words.say('refused.group.hint', { app }))
    const copy = copyButton(
      `${wallet.adapterId}:${wallet.address}`,
      words.say('refused.copy'),
      words.say('refused.copied'),
    )
    offer(...copy, link(words.say('refused.other-wallet'), signIn))
  } else if (isSignedOut) {
    fill(section, 'text', words.say('refused.signed-out'))
    offer(link(words.say('refused.sign-in'), signIn))
  } else if (reason === 'ORIGIN_NOT_TRUSTED') {
    fill(section, 'text', words.say('refused.origin', { host: location.host }), location.host)
    offer(link(words.say('not-found.button'), '/'))
  } else {
    fill(section, 'text', words.notice(reason))
    offer(button(words.say('task.retry'), () => location.reload()))
  }
}

/** Shows the ways on, the first one filled. */
function offer(...ways: readonly HTMLElement[]): void {
  for (const [index, way] of ways.entries()) way.className = `button wide ${index === 0 ? 'primary' : 'plain'}`
  byId('ways').replaceChildren(...ways)
}

function link(text: string, href: string): HTMLElement {
  return Object.assign(element('a', '', text), { href })
}

function button(text: string, act: () => void): HTMLElement {
  const made = Object.assign(element('button', '', text), { type: 'button' })
  made.addEventListener('click', act)
  return made
}
