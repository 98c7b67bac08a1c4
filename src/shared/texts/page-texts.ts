import type { english } from './english.ts'

/**
 * What the texts of a language are. Nothing here needs a browser, because the service checks the operator's texts with
 * it.
 */

/** Name of a text. */
export type TextKey = keyof typeof english

/** All texts of a language, with placeholders such as `{host}`. */
export type Texts = Readonly<Record<TextKey, string>>

/** Texts of a page in English: parts of the list. */
export type PageTexts = readonly Partial<Texts>[]

/**
 * What pages say where no script runs, so that no language can be chosen: the build writes it into them in each
 * language beside English.
 */
export interface BareTexts {
  /** On all pages but these. */
  readonly page: string
  /** On the approval page. */
  readonly claim: string
  /** At an unknown path. */
  readonly unknown: string
}

/** An operator's texts by language tag (BCP 47): not all of each language. */
export type OperatorTexts = Readonly<Record<string, Partial<Texts>>>

type PlaceholdersIn<T> = T extends `${string}{${infer Name}}${infer Rest}` ? Name | PlaceholdersIn<Rest> : never

/** The values for the placeholders of a text. */
export type ValuesFor<Key extends TextKey> = Readonly<Record<PlaceholdersIn<(typeof english)[Key]>, string>>

/** Names of the placeholders in a text. */
export function placeholdersOf(text: string): ReadonlySet<string> {
  return new Set([...text.matchAll(/\{([^{}]*)\}/g)].map(([, name]) => name as string))
}
