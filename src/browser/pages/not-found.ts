import { notFoundTexts } from '../../shared/texts/pages.ts'
import { showBrand } from './brand.ts'
import { byId, fill, fillTexts, metaContent } from './dom.ts'
import { chooseWords, languagesOf, readOperatorTexts } from './words.ts'

/** The page at an address that the service has no page for. */

const words = chooseWords(
  notFoundTexts,
  languagesOf(new URL(location.href)),
  readOperatorTexts(metaContent('countersign-texts')),
)
const section = byId('not-found')

document.documentElement.lang = words.language
document.documentElement.dir = words.direction
document.title = `${words.say('not-found.title')} · ${document.title}`
fillTexts((key) => words.text(key))
fill(section, 'text', words.say('not-found.text', { host: location.host }), location.host)
showBrand()
section.hidden = false
document.body.toggleAttribute('data-waiting', false)
