import type { Translation } from './languages.ts'
import type { BareTexts, Texts } from './page-texts.ts'

/** All texts of the pages in a language. */
interface Translated {
  readonly texts: Texts
  readonly bare: BareTexts
}

/**
 * The pages in all languages but English, which a page has from the start. A page loads the texts of its user's
 * language: of them, the build leaves only its own (`scripts/build-pages.ts`).
 */
export const translations: Readonly<Record<Translation, () => Promise<Translated>>> = {
  de: () => import('./german.ts'),
  es: () => import('./spanish.ts'),
  ja: () => import('./japanese.ts'),
}
