import type { DescEnum } from '@bufbuild/protobuf'

/**
 * The words that stand for an enum's values in REST's JSON, in the client's types and in the domain: the names of the
 * protos in lower case, without the enum's prefix. ORDER_STATUS_WAITING_USER is `waiting_user`. UNSPECIFIED is not a
 * word.
 */
export interface EnumWords {
  /** All words, in the order of the enum. */
  readonly words: readonly string[]
  /** The value of a word; `undefined` for a text that is not one. */
  numberOf(text: string): number | undefined
  /** The word of a value; `undefined` for UNSPECIFIED and for a value that is not in the enum. */
  wordOf(value: unknown): string | undefined
}

/** The same for an enum that is known at compile time. */
export interface TypedEnumWords<Word extends string, Value extends number> extends EnumWords {
  readonly words: readonly Word[]
  numberOf(word: Word): Value
  numberOf(text: string): Value | undefined
  wordOf(value: unknown): Word | undefined
}

/** The words of an enum as a type, from its generated constants: `'login' | 'sign'` for `typeof OrderKind`. */
export type EnumWord<Constants> = Lowercase<Exclude<keyof Constants & string, 'UNSPECIFIED'>>

/** The words of an enum, from its generated constants, such as `OrderKind`. */
export function enumWords<const Constants extends Readonly<Record<string, number>>>(
  constants: Constants,
): TypedEnumWords<EnumWord<Constants>, Constants[keyof Constants]> {
  return wordsOf(Object.entries(constants)) as TypedEnumWords<EnumWord<Constants>, Constants[keyof Constants]>
}

const described = new WeakMap<DescEnum, EnumWords>()

/** The words of an enum, from its descriptor, for code that learns which enum it has at run time. */
export function descEnumWords(desc: DescEnum): EnumWords {
  const words = described.get(desc) ?? wordsOf(desc.values.map(({ localName, number }) => [localName, number]))
  described.set(desc, words)
  return words
}

function wordsOf(constants: readonly (readonly [name: string, value: number])[]): EnumWords {
  const named = constants
    .filter(([, value]) => value !== 0)
    .map(([name, value]) => [name.toLowerCase(), value] as const)
  const numbers = new Map(named)
  const words = new Map<unknown, string>(named.map(([word, value]) => [value, word]))
  return {
    words: [...words.values()],
    numberOf: (text) => numbers.get(text),
    wordOf: (value) => words.get(value),
  }
}
