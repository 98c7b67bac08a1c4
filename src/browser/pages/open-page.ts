import type { PageName } from '../../shared/page-names.ts'
import type { CommonValues, PageValues } from '../../shared/page-values.ts'
import type { PageTexts, TextKey } from '../../shared/texts/page-texts.ts'
import { showBrand } from './brand.ts'
import { fillTexts } from './dom.ts'
import { chooseWords, type Words } from './words.ts'

/** What the parts of a page share: the server's values, and the words for the page's user. */
export interface Page<Values extends CommonValues = CommonValues> {
  readonly values: Values
  readonly words: Words
}

/**
 * Begins a page: reads the server's values, chooses the language, writes the texts and shows the operator's brand. The
 * languages that an application asks for (`ui_locales`) come before the browser's. With `title`, the text of this name
 * stands before the application's in the title of the tab.
 */
export function openPage<Name extends PageName>(texts: PageTexts, title?: TextKey): Page<PageValues[Name]> {
  const json = document.querySelector<HTMLMetaElement>('meta[name="countersign-values"]')?.content ?? '{}'
  const values = JSON.parse(json) as PageValues[Name]
  const asked = values.locales ?? new URL(location.href).searchParams.get('ui_locales') ?? ''
  const words = chooseWords(texts, [...asked.split(' '), ...navigator.languages], values.texts)
  const { documentElement: root } = document
  root.lang = words.language
  root.dir = words.direction
  if (title !== undefined) document.title = `${words.text(title)} · ${values.appName}`
  fillTexts((key) => words.text(key))
  showBrand(values)
  return { values, words }
}
