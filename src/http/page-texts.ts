import { readFileSync } from 'node:fs'
import { isObject } from '../base/json-file.ts'
import { english } from '../shared/texts/english.ts'
import { type OperatorTexts, placeholdersOf } from '../shared/texts/page-texts.ts'

/** Largest file of texts, in bytes. All texts of a language are about 28 KB. */
const maxFileBytes = 1024 * 1024

const setting = 'pages.textsFile (COUNTERSIGN_TEXTS_FILE)'

/**
 * Reads the operator's texts for the pages: a JSON file with an object of texts for each language. Returns `undefined`
 * without a file.
 *
 * Throws a `TypeError` of one line if the file cannot be read or is not such JSON, has a text that no page has, or one
 * whose placeholders are not those of the English text.
 */
export function readPageTexts(file: string | undefined): OperatorTexts | undefined {
  if (file === undefined) return undefined
  const languages = asObject(parse(file), 'the file')
  for (const [language, texts] of Object.entries(languages)) {
    if (!isLanguage(language)) refuse(`"${shorten(language)}" is not a language tag such as fr or pt-BR`)
    for (const [key, text] of Object.entries(asObject(texts, shorten(language))))
      checkText(`${language}: ${key}`, key, text)
  }
  return languages as OperatorTexts
}

function parse(file: string): unknown {
  let text: string
  try {
    // Drops the byte order mark that some editors put first.
    text = new TextDecoder().decode(readFileSync(file))
  } catch (cause) {
    throw new TypeError(`${setting}: ${file} cannot be read (${(cause as NodeJS.ErrnoException).code})`, { cause })
  }
  if (Buffer.byteLength(text) > maxFileBytes) refuse(`${file} is larger than 1 MiB`)
  try {
    return JSON.parse(text)
  } catch (cause) {
    throw new TypeError(`${setting}: ${file} is not JSON`, { cause })
  }
}

function checkText(place: string, key: string, text: unknown): void {
  if (!Object.hasOwn(english, key)) refuse(`${shorten(place)} is not a text of the page`)
  if (typeof text !== 'string') refuse(`${place} must be a text`)
  if (text.trim() === '') refuse(`${place} must not be empty`)
  const expected = placeholdersOf(english[key as keyof typeof english])
  const found = placeholdersOf(text)
  const missing = [...expected].find((name) => !found.has(name))
  if (missing !== undefined) refuse(`${place} lacks the placeholder {${missing}}`)
  const unknown = [...found].find((name) => !expected.has(name))
  if (unknown !== undefined)
    refuse(`${place} has the placeholder {${shorten(unknown)}}, which the English text has not`)
}

function asObject(value: unknown, place: string): Readonly<Record<string, unknown>> {
  return isObject(value) ? value : refuse(`${place} must be a JSON object`)
}

function isLanguage(tag: string): boolean {
  try {
    return Intl.getCanonicalLocales(tag).length === 1
  } catch {
    return false
  }
}

/** A name of the file in one line of at most 80 characters. */
function shorten(text: string): string {
  return JSON.stringify(text.slice(0, 80)).slice(1, -1)
}

function refuse(why: string): never {
  throw new TypeError(`${setting}: ${why}`)
}
