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

/** Options of {@link openPage}. */
interface PageOptions {
  /** Name of a text that stands before the application's name in the title of the tab. Default: none. */
  readonly title?: TextKey
  /**
   * Whether `ui_locales` in the page's address comes before the browser's languages. Default: no, because anyone can
   * make a link to a page that warns its user.
   */
  readonly readsLocales?: boolean
}

/**
 * Begins a page: reads the server's values, chooses and loads the language, writes the texts and shows the operator's
 * brand. The languages that an application asks the server for come before the browser's.
 */
export async function openPage<Name extends PageName>(
  texts: PageTexts,
  { title, readsLocales = false }: PageOptions = {},
): Promise<Page<PageValues[Name]>> {
  const json = document.querySelector<HTMLMetaElement>('meta[name="countersign-values"]')?.content ?? '{}'
  const values = JSON.parse(json) as PageValues[Name]
  const inAddress = readsLocales ? new URL(location.href).searchParams.get('ui_locales') : null
  const asked = values.locales ?? inAddress ?? ''
  const words = await chooseWords(texts, [...asked.split(' '), ...navigator.languages], values.texts)
  const { documentElement: root } = document
  root.lang = words.language
  root.dir = words.direction
  if (title !== undefined) document.title = `${words.text(title)} · ${values.appName}`
  fillTexts((key) => words.text(key))
  showBrand(values)
  return { values, words }
}
