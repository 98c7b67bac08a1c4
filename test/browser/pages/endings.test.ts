import { expect, test } from 'vitest'
import { type Ending, endingOf, endingOfInbox, endings } from '../../../src/browser/pages/endings.ts'
import { chooseWords } from '../../../src/browser/pages/words.ts'
import { reasons } from '../../../src/shared/errors.ts'
import { english } from '../../../src/shared/texts/english.ts'
import { approveTexts } from '../../../src/shared/texts/pages.ts'

const words = await chooseWords(approveTexts, [])

test('every way in which a request can be over has words of its own', () => {
  const found = [...Object.keys(reasons).flatMap((reason) => endingOf(reason) ?? []), ...Object.values(endings)]
  const titles = found.map((ending) => words.say(`ending.${ending!.name}.title`))
  expect(new Set(titles).size).toBe(found.length)
})

test('every ending says what to do next', () => {
  const next =
    /close this page|get a new code|Scan the code|tell the site|[Cc]ancel (it|the request)|sign in|Go back|in your account|the site can ask again|decline there/i
  const texts = Object.entries(english).filter(([key]) => /^ending\..*\.text$/.test(key))
  expect(texts.filter(([, text]) => !next.test(text))).toEqual([])
  expect(texts.length).toBeGreaterThan(15)
})

test('no ending of an order of the inbox speaks of a computer or a code, which such an order has not', () => {
  const elsewhere = new Set<Ending>([endings.codeLate, endings.wrongReturnCodes, endings.sessionEnded])
  const found = [...Object.keys(reasons).flatMap((reason) => endingOf(reason) ?? []), ...Object.values(endings)]
  const texts = found
    .filter((ending) => !elsewhere.has(ending) && !/^(claimed|token-invalid|link-|session-|wallet-)/.test(ending.name))
    .map((ending) => words.say(`ending.${endingOfInbox(ending).name}.text`))
  expect(texts.length).toBeGreaterThan(8)
  expect(texts.filter((text) => /computer|code|phone/i.test(text))).toEqual([])
})

test('what passes is no ending', () => {
  for (const code of [
    'NETWORK',
    'STORE_UNAVAILABLE',
    'SERVER_BUSY',
    'HOST_UNAVAILABLE',
    'RATE_LIMITED',
    'INTERNAL',
    'WALLET_DECLINED',
    'WALLET_CLOSED',
    'WRONG_WALLET',
    'NETWORK_MISMATCH',
  ]) {
    expect(endingOf(code)).toBe(undefined)
    expect(words.notice(code)).not.toContain(code)
  }
})

test('an unforeseen code is named, without the words that are for the operator', () => {
  expect(words.notice('START_KEY_REQUIRED')).toBe('Something went wrong (START_KEY_REQUIRED).')
})
