import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { silentLogger } from '../../../src/base/log.ts'
import { chooseWords, elementTexts as elementTextsOf } from '../../../src/browser/pages/words.ts'
import { readPageTexts } from '../../../src/http/page-texts.ts'
import { createCountersign } from '../../../src/index.ts'
import { englishTexts as chooserTexts } from '../../../src/shared/texts/chooser.ts'
import { english } from '../../../src/shared/texts/english.ts'
import { englishTexts as elementTexts, englishDeviceTexts } from '../../../src/shared/texts/english-element.ts'
import type { Translation } from '../../../src/shared/texts/languages.ts'
import type { TextKey } from '../../../src/shared/texts/page-texts.ts'
import * as pageTexts from '../../../src/shared/texts/pages.ts'
import { translations } from '../../../src/shared/texts/translations.ts'
import { temporaryFolder } from '../../support/temporary-folder.ts'

const { approveTexts } = pageTexts
const englishWords = await chooseWords(approveTexts, [])

/** A file with this content, removed when the test ends. */
function fileWith(content: string): string {
  const folder = temporaryFolder()
  const file = join(folder, 'texts.json')
  writeFileSync(file, content)
  return file
}

test('English has contractions wherever people say them', () => {
  const stiff =
    /\b(is|are|was|were|do|does|did|has|have|had|can|could|will|would) not\b|\bcannot\b|\b(you|it|there|they) (are|is|will)\b/i
  const texts = Object.entries({ ...english, ...elementTexts, ...englishDeviceTexts, ...chooserTexts })
  expect(texts.filter(([, text]) => stiff.test(String(text)))).toEqual([])
})

/** Texts that are spelt like the English ones on purpose: a language without a row does not compile. */
const alike: Readonly<Record<Translation, object>> = {
  de: { 'review.details.browser': 'Browser' },
  es: {},
  ja: {},
}

test.each(Object.entries(translations))(
  '%s has a text of its own for each English one, with the same placeholders',
  async (tag, load) => {
    const { texts } = await load()
    // The check of the operator's files compares keys and placeholders.
    expect(() => readPageTexts(fileWith(JSON.stringify({ [tag]: texts })))).not.toThrow()
    expect(Object.keys(texts).sort()).toEqual(Object.keys(english).sort())
    const same = Object.entries(texts).filter(([key, text]) => text === english[key as keyof typeof english])
    expect(Object.fromEntries(same)).toEqual(alike[tag as Translation])
  },
)

test.each(Object.entries(translations))('%s has each plural form of its numbers, or one for all', async (tag, load) => {
  const categories = new Intl.PluralRules(tag).resolvedOptions().pluralCategories
  const counted = Object.entries((await load()).texts).filter(([, text]) => text.includes(' | '))
  expect(counted.filter(([, text]) => text.split(' | ').length !== categories.length)).toEqual([])
})

test.each([
  ['en', ['1 browser signed out.', '2 browsers signed out.', '1,000,000 browsers signed out.']],
  ['de', ['1 Browser abgemeldet.', '2 Browser abgemeldet.', '1.000.000 Browser abgemeldet.']],
  [
    'es',
    [
      'Se cerró sesión en 1 navegador.',
      'Se cerró sesión en 2 navegadores.',
      'Se cerró sesión en 1.000.000 de navegadores.',
    ],
  ],
  ['ja', [1, 2, '1,000,000'].map((count) => `${count}個のブラウザをログアウトしました。`)],
])('%s counts one, two and a million', async (language, said) => {
  const words = await chooseWords(pageTexts.accountTexts, [language])
  expect([1, 2, 1_000_000].map((count) => words.say('account.ended', { count: String(count) }))).toEqual(said)
})

test.each(Object.entries(pageTexts))('on the page of %s, a text names only controls of that page', async (_, page) => {
  const loaded = await Promise.all(Object.values(translations).map(async (load) => (await load()).texts))
  const foreign = [english, ...loaded].flatMap((all) => {
    const texts = Object.keys(Object.assign({}, ...page)).map((key) => all[key as TextKey])
    const named = texts.flatMap((text) => [...text.matchAll(/[“„「](.+?)[”“」]/g)].map(([, name = '']) => name))
    return named.filter((name) => !/^\{\w+\}$/.test(name) && !texts.includes(name))
  })
  expect(foreign).toEqual([])
})

test('the buttons by which other programs know the English page are named as settled', () => {
  expect(english['start.button']).toMatch(/^Continue/)
  expect(english['start.not-me']).toMatch(/^Not me/)
  expect(english['review.approve']).toMatch(/^Approve/)
  expect(english['review.decline']).toMatch(/^Decline/)
})

test('the sign-in page has a text for each of the custom element’s, in English the same words', () => {
  const { wallets, ...order } = elementTextsOf(englishWords)
  expect(order).toEqual(elementTexts)
  expect(Object.keys(wallets ?? {}).sort()).toEqual(Object.keys({ ...chooserTexts, ...englishDeviceTexts }).sort())
  expect({ ...chooserTexts, ...englishDeviceTexts, ...wallets }).toEqual({
    ...chooserTexts,
    ...englishDeviceTexts,
    elsewhere: english['wallet.elsewhere'],
    demo: english['wallet.demo.about'],
  })
})

test.each([
  [['de-AT', 'en'], 'de-AT', 'Bestätigen'],
  [['nl', 'de', 'en'], 'de', 'Bestätigen'],
  [['en-GB', 'de'], 'en-GB', 'Approve'],
  [['nl', 'sv'], 'en', 'Approve'],
  // The page's address can say anything.
  [['', 'de-!', 'es-a', 'de'], 'de', 'Bestätigen'],
  [[], 'en', 'Approve'],
])('who reads %j gets %s', async (languages, language, approve) => {
  const words = await chooseWords(approveTexts, languages)
  expect([words.language, words.say('review.approve')]).toEqual([language, approve])
})

test('the operator’s texts come before the built-in ones, a region’s before its language’s', async () => {
  const operators = {
    fr: { 'review.approve': 'Approuver', 'review.decline': 'Refuser' },
    'fr-CA': { 'review.decline': 'Décliner' },
    de: { 'review.approve': 'Freigeben' },
    en: { 'review.decline': 'Decline it' },
  }
  const said = async (language: string) => {
    const words = await chooseWords(approveTexts, [language], operators)
    return [words.say('review.approve'), words.say('review.decline'), words.say('start.button')]
  }
  expect(await said('fr-FR')).toEqual(['Approuver', 'Refuser', 'Continue'])
  expect(await said('fr-ca')).toEqual(['Approuver', 'Décliner', 'Continue'])
  expect(await said('de')).toEqual(['Freigeben', 'Ablehnen', 'Weiter'])
  expect(await said('nl')).toEqual(['Approve', 'Decline it', 'Continue'])
})

test('times are as the language has them', async () => {
  expect([3_000, 29_000, 61_000, 7_300_000].map((ms) => englishWords.ago(ms))).toEqual([
    'just now',
    '20 sec. ago',
    '1 min. ago',
    '2 hr. ago',
  ])
  const inGerman = await chooseWords(approveTexts, ['de'])
  expect(inGerman.ago(29_000)).toBe('vor 20 Sek.')
  expect([29_000, 31_000, 3_580_000, 3_601_000, 86_340_000].map((ms) => englishWords.left(ms))).toEqual([
    'less than a minute',
    '1 min',
    '1 hr',
    '1 hr',
    '23 hr 59 min',
  ])
  expect(inGerman.left(4_920_000)).toBe('1 Std. 22 Min.')
})

test('in a language that is written from right to left, the name of a site keeps its direction', async () => {
  const words = await chooseWords(approveTexts, ['ar'], { ar: { 'review.says.site': 'رسالة من {host}:' } })
  expect(words.direction).toBe('rtl')
  expect(words.say('review.says.site', { host: 'app.example' })).toBe('رسالة من \u2068app.example\u2069:')
  expect([englishWords.direction, englishWords.say('review.says.site', { host: 'app.example' })]).toEqual([
    'ltr',
    'Message from app.example:',
  ])
})

test.each([
  ['{"fr": ', /is not JSON$/],
  ['[]', /the file must be a JSON object$/],
  ['{"fr": "Bonjour"}', /fr must be a JSON object$/],
  ['{"not a language!": {}}', /"not a language!" is not a language tag/],
  ['{"fr": {"review.aprove": "Approuver"}}', /fr: review\.aprove is not a text of the page$/],
  ['{"fr": {"toString": "Approuver"}}', /fr: toString is not a text of the page$/],
  ['{"fr": {"review.approve": 1}}', /fr: review\.approve must be a text$/],
  ['{"fr": {"review.approve": " "}}', /fr: review\.approve must not be empty$/],
  ['{"fr": {"review.says.site": "Message :"}}', /fr: review\.says\.site lacks the placeholder \{host\}$/],
  ['{"fr": {"review.approve": "Approuver {host}"}}', /fr: review\.approve has the placeholder \{host\}/],
  [`{"fr": {"${'x\\n'.repeat(90)}": ""}}`, /is not a text of the page$/],
])('the start stops with one line for %s', async (content, line) => {
  const options = { store: 'sqlite::memory:', logger: silentLogger, pages: { textsFile: fileWith(content) } }
  const error = await createCountersign(options).then(
    () => undefined,
    (thrown: unknown) => thrown,
  )
  expect(error).toBeInstanceOf(TypeError)
  expect((error as TypeError).message).toMatch(line)
  expect((error as TypeError).message).toMatch(/^pages\.textsFile \(COUNTERSIGN_TEXTS_FILE\): .*$/)
})

test('nor does it start without the file', () => {
  expect(() => readPageTexts('/no/such/file.json')).toThrow(
    /^pages\.textsFile \(COUNTERSIGN_TEXTS_FILE\): \/no\/such\/file\.json cannot be read \(ENOENT\)$/,
  )
})
