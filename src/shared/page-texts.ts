import type { english } from './english.ts'

/**
 * What the texts of a language are. Nothing here needs a browser, because the service checks the operator's texts with
 * it.
 */

/** A text with a number, in each plural category (see `Intl.PluralRules`) that its language needs. */
export type PluralText = { readonly other: string } & {
  readonly [category in Exclude<Intl.LDMLPluralRule, 'other'>]?: string
}

/** A text, with placeholders such as `{host}`. */
export type Text = string | PluralText

/** Name of a text. */
export type TextKey = keyof typeof english

/** All texts of a language. */
export type Texts = { readonly [Key in TextKey]: (typeof english)[Key] extends string ? string : PluralText }

type PlaceholdersIn<T> = T extends `${string}{${infer Name}}${infer Rest}` ? Name | PlaceholdersIn<Rest> : never
type FormsOf<T> = T extends string ? T : T[keyof T]

/** Names of the placeholders of a text. */
export type PlaceholdersOf<Key extends TextKey> = PlaceholdersIn<FormsOf<(typeof english)[Key]>>

/** The values for the placeholders of a text. */
export type ValuesFor<Key extends TextKey> = {
  readonly [Name in PlaceholdersOf<Key>]: Name extends 'count' ? number : string
}

/** Plural categories in the order in which `Intl.PluralRules` names them. */
export const pluralCategories: readonly Intl.LDMLPluralRule[] = ['zero', 'one', 'two', 'few', 'many', 'other']

/** Names of the placeholders in a text. */
export function placeholdersOf(text: string): ReadonlySet<string> {
  return new Set([...text.matchAll(/\{([^{}]*)\}/g)].map(([, name]) => name as string))
}
