import type { Translation } from '../../shared/texts/languages.ts'
import type { OperatorTexts, PageTexts, TextKey, Texts, ValuesFor } from '../../shared/texts/page-texts.ts'
import { translations } from '../../shared/texts/translations.ts'
import { english } from '../client/custom-element.ts'
import { loadOnDemand } from '../client/page.ts'
import type { DeviceTexts, SignInTexts } from '../element/texts.ts'

/** Categories of numbers that languages tell apart, in the order of the forms of a text. */
const pluralCategories = ['zero', 'one', 'two', 'few', 'many', 'other'] as const
const rightToLeft = /^(ar|arc|ckb|dv|fa|he|ks|ku-Arab|nqo|ps|sd|syr|ug|ur|yi)(-|$)/

/** Speaks to the page's user in one language. */
export class Words {
  /** Language tag (BCP 47). */
  readonly language: string
  readonly texts: Partial<Texts>
  readonly #own: Partial<Texts>
  readonly #times: Intl.RelativeTimeFormat

  /** `own` are the texts that the language has; English stands in for the others. */
  constructor(language: string, texts: Partial<Texts>, own: Partial<Texts> = texts) {
    this.language = language
    this.texts = texts
    this.#own = own
    this.#times = new Intl.RelativeTimeFormat(language, { numeric: 'always', style: 'short' })
  }

  /** Direction in which the language is written. */
  get direction(): 'ltr' | 'rtl' {
    return rightToLeft.test(this.language) ? 'rtl' : 'ltr'
  }

  /** A text with its placeholders filled in. */
  say<Key extends TextKey>(
    key: Key,
    ...[values]: [keyof ValuesFor<Key>] extends [never] ? [] : [ValuesFor<Key>]
  ): string {
    const filled: Readonly<Record<string, string>> = values ?? {}
    const said = this.#formOf(this.text(key), filled.count).replace(/\{([^{}]*)\}/g, (placeholder, name: string) => {
      const value = name === 'count' ? this.number(Number(filled.count)) : filled[name]
      if (value === undefined) return placeholder
      // Names of sites and times are written from left to right. Without isolation they would reorder a right-to-left
      // sentence.
      return this.direction === 'rtl' ? `\u2068${value}\u2069` : value
    })
    if (!Object.hasOwn(this.#own, key)) english.add(said)
    return said
  }

  /** The form of a text for a number: forms are separated by " | ", in the order of {@link pluralCategories}. */
  #formOf(text: string, count: string | undefined): string {
    const forms = text.split(' | ')
    if (count === undefined || forms.length === 1) return text
    const rules = new Intl.PluralRules(this.language)
    const own = pluralCategories.filter((name) => rules.resolvedOptions().pluralCategories.includes(name))
    return forms[own.indexOf(rules.select(Number(count)))] ?? (forms.at(-1) as string)
  }

  /** The text with this name, as it is written. Throws if the page has none. */
  text(key: string): string {
    const text = this.texts[key as TextKey]
    if (text === undefined) throw new Error(`there is no text ${key}`)
    if (!Object.hasOwn(this.#own, key)) english.add(text)
    return text
  }

  /** The notice for a failure after which the user can try again. */
  notice(code: string): string {
    return this.texts[`notice.${code}` as TextKey] ?? this.say('task.failed', { code })
  }

  /** A time in the past, such as "20 sec. ago". `ms` is how long ago, in milliseconds. */
  ago(ms: number): string {
    const seconds = Math.floor(ms / 1000)
    if (seconds < 10) return this.say('time.now')
    if (seconds < 60) return this.#times.format(-Math.floor(seconds / 10) * 10, 'second')
    if (seconds < 3600) return this.#times.format(-Math.floor(seconds / 60), 'minute')
    return this.#times.format(-Math.floor(seconds / 3600), 'hour')
  }

  /** A time that is left, such as "3 hr 12 min". `ms` is how long it is, in milliseconds. */
  left(ms: number): string {
    const minutes = Math.round(ms / 60_000)
    if (minutes < 1) return this.say('time.soon')
    const parts = [
      { unit: 'hour', value: Math.floor(minutes / 60) },
      { unit: 'minute', value: minutes % 60 },
    ].filter(({ value }) => value > 0)
    return parts
      .map(({ unit, value }) => new Intl.NumberFormat(this.language, { style: 'unit', unit }).format(value))
      .join(' ')
  }

  /** A number with all its digits. */
  number(value: number): string {
    const size = Math.abs(value)
    // Very small and very large numbers stay as they are: languages have no usual way of writing them.
    if (size !== 0 && (size < 1e-6 || size >= 1e15)) return String(value)
    return new Intl.NumberFormat(this.language, { maximumFractionDigits: 20, useGrouping: 'min2' }).format(value)
  }

  /** A time of day, such as "16:40". */
  time(at: number): string {
    return new Intl.DateTimeFormat(this.language, { timeStyle: 'short' }).format(at)
  }

  /** A day and a time, such as "26 Nov 2026, 16:40". */
  moment(at: number): string {
    return new Intl.DateTimeFormat(this.language, { dateStyle: 'medium', timeStyle: 'short' }).format(at)
  }

  /** When something was, as short as it is clear: "16:40" today, "27 Nov", or "27 Nov 2025" in another year. */
  day(at: number): string {
    const [day, today] = [new Date(at), new Date()]
    if (day.toDateString() === today.toDateString()) return this.time(at)
    const year = day.getFullYear() === today.getFullYear() ? undefined : 'numeric'
    return new Intl.DateTimeFormat(this.language, { day: 'numeric', month: 'short', year }).format(at)
  }

  /** Facts in one line. Names of sites are written from left to right. */
  join(...facts: readonly string[]): string {
    return facts.map((fact) => (this.direction === 'rtl' ? `\u2068${fact}\u2069` : fact)).join(' · ')
  }
}

/**
 * The words of a page for a user who reads these languages (BCP 47, the preferred one first). The operator's texts come
 * before the page's own, and English stands in for what a language lacks, and for one that cannot be loaded.
 */
export async function chooseWords(
  own: PageTexts,
  languages: readonly string[],
  operators: OperatorTexts = {},
): Promise<Words> {
  const byTag = new Map(Object.entries(operators).map(([tag, texts]) => [tag.toLowerCase(), texts]))
  const inEnglish = Object.assign({}, ...own, byTag.get('en'))
  for (const language of languages.filter(isTag)) {
    const tags = widerTags(language)
    const built = tags.find(isTranslated)
    const translation = built && (await loadOnDemand(translations[built]).catch(() => undefined))
    const given = tags.flatMap((tag) => byTag.get(tag) ?? [])
    const its = Object.assign({}, translation?.texts, ...given)
    if (tags.includes('en')) return new Words(language, Object.assign(inEnglish, its))
    if (translation !== undefined || given.length > 0) return new Words(language, Object.assign(inEnglish, its), its)
  }
  return new Words('en', inEnglish)
}

/** Whether a text, such as one of the page's address, is a language tag. Times and numbers throw at any other. */
function isTag(text: string): boolean {
  try {
    return Intl.getCanonicalLocales(text).length > 0
  } catch {
    return false
  }
}

function isTranslated(tag: string): tag is Translation {
  return Object.hasOwn(translations, tag)
}

/** The tags that a language tag is a case of and itself, such as pt and pt-br, in lower case. */
function widerTags(language: string): string[] {
  const parts = language.toLowerCase().split('-')
  return parts.map((_, index) => parts.slice(0, index + 1).join('-'))
}

/** Texts of the custom element, and of its list of wallets, in the page's language. */
export function elementTexts(words: Words): Partial<SignInTexts> {
  const wallets: Partial<DeviceTexts> = {
    ...textsUnder('sign-in.wallet.', words),
    looking: words.say('wallet.looking'),
    none: words.say('wallet.none'),
    noneButOthers: words.say('wallet.none.others'),
    list: words.say('wallet.list'),
    elsewhere: words.say('wallet.elsewhere'),
    demo: words.say('wallet.demo.about'),
    demoWallet: words.say('wallet.demo'),
  }
  return { ...textsUnder('sign-in.order.', words), wallets }
}

/** The texts whose names begin so, by the rest of their names. The element fills in their placeholders. */
export function textsUnder(prefix: string, { texts }: Words): Record<string, string> {
  const entries = Object.entries(texts).filter(([key]) => key.startsWith(prefix))
  return Object.fromEntries(entries.map(([key, text]) => [key.slice(prefix.length), text]))
}
