import { invalidField } from './errors.ts'

/**
 * What no line of a challenge has, because with it a value could forge a line, look like another value, or fill a
 * wallet's screen:
 *
 * - line breaks and other control characters (Cc, Zl, Zp) and lone surrogates (Cs);
 * - the default-ignorable characters (Unicode, DerivedCoreProperties): they show nothing, or change the direction of
 *   text (Unicode TR9);
 * - other characters that show nothing: the blank Braille pattern, the null notehead and the marks of interlinear
 *   annotations;
 * - of the default-ignorable ones, texts need the joiners U+200C and U+200D (Persian, Indic scripts, emoji) and the
 *   variation selectors U+FE0E and U+FE0F (emoji): they count behind a letter, mark, number or symbol;
 * - more than four combining marks in a row, which reach into the lines around.
 */
const forbidden = new RegExp(
  [
    String.raw`[\p{Cc}\p{Zl}\p{Zp}\p{Cs}]`,
    String.raw`(?![\u200C\u200D\uFE0E\uFE0F])\p{Default_Ignorable_Code_Point}`,
    String.raw`[\u2800\u{1D159}\uFFF9-\uFFFB]`,
    String.raw`(?<![\p{L}\p{M}\p{N}\p{S}])[\u200C\u200D]`,
    String.raw`(?<![\p{L}\p{N}\p{S}#*‼⁉〰])[\uFE0E\uFE0F]`,
    String.raw`\p{M}{5,}`,
  ].join('|'),
  'u',
)

const allForbidden = new RegExp(forbidden, 'gu')

/** A text without the characters that {@link isPlainLine} refuses, for texts that are shown next to a challenge. */
export function withoutForbidden(text: string): string {
  // Most texts have none, which is quicker to see than to replace.
  return isPlainLine(text) ? text : text.replace(allForbidden, '')
}

/** Whether a text can be a part of a challenge. */
export function isPlainLine(text: string): boolean {
  return !forbidden.test(text)
}

/** The first character for which {@link isPlainLine} refuses a text: its index, and its name such as U+200F. */
export function firstForbidden(text: string): { readonly index: number; readonly name: string } | undefined {
  const index = text.search(forbidden)
  if (index === -1) return undefined
  return { index, name: `U+${(text.codePointAt(index) ?? 0).toString(16).toUpperCase().padStart(4, '0')}` }
}

/**
 * The marks of Unicode that order text for people who write from right to left, and show nothing (UAX 9, 2.6). `Intl`
 * puts them into amounts and dates of some languages.
 */
export const orderingMarks = /[\u200E\u200F\u061C]/gu

/**
 * Refuses a caller's text that cannot be a part of a challenge, with INVALID_REQUEST. `field` is its name in the
 * protos.
 */
export function requirePlainLine(field: string, text: string): void {
  if (isPlainLine(text)) return
  throw invalidField(
    field,
    `${field} must be one line of text without control, text-direction and invisible characters, or five ` +
      'combining marks in a row',
  )
}
