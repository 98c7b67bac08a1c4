/**
 * Languages that pages, element and wallet list speak by themselves (BCP 47). English is what the others fall back to.
 */
export const languages = ['en', 'de', 'es', 'ja'] as const

/** One of {@link languages}. */
export type Language = (typeof languages)[number]

/** A language that is loaded where it is used. */
export type Translation = Exclude<Language, 'en'>
