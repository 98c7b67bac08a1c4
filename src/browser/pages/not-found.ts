import { notFoundTexts } from '../../shared/texts/pages.ts'
import { byId, fill } from './dom.ts'
import { openPage } from './open-page.ts'

/** The page at an address that the service has no page for. */

const { words } = openPage<'not-found'>(notFoundTexts, { title: 'not-found.title', readsLocales: true })
const section = byId('not-found')

fill(section, 'text', words.say('not-found.text', { host: location.host }), location.host)
section.hidden = false
document.body.toggleAttribute('data-waiting', false)
