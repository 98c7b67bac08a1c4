import type { ElementTexts } from '../../shared/texts/english-element.ts'
import type { Translation } from '../../shared/texts/languages.ts'
import { loadOnDemand } from './page.ts'

/** Texts of element and wallet list in all languages but English, each loaded where it is used. */
const translations: Readonly<Record<Translation, () => Promise<{ readonly texts: ElementTexts }>>> = {
  de: () => import('../../shared/texts/german-element.ts'),
  es: () => import('../../shared/texts/spanish-element.ts'),
  ja: () => import('../../shared/texts/japanese-element.ts'),
}

/**
 * Loads the texts of element and wallet list in a language (BCP 47). Resolves with `undefined` for English, for one
 * that is not built in, and if they cannot be loaded.
 */
export async function loadTranslation(language: string): Promise<ElementTexts | undefined> {
  const [tag = ''] = language.toLowerCase().split('-')
  if (!Object.hasOwn(translations, tag)) return undefined
  const loaded = await loadOnDemand(translations[tag as Translation]).catch(() => undefined)
  return loaded?.texts
}
