import { expect, test } from 'vitest'
import { typedCode } from '../../src/shared/typed-code.ts'

test('digits of every script that this Node.js can write are 0 to 9', () => {
  const systems = Intl.supportedValuesOf('numberingSystem')
  const written = systems.map((system) => {
    const format = new Intl.NumberFormat(`en-u-nu-${system}`, { useGrouping: false, minimumIntegerDigits: 10 })
    return format.format(123_456_789)
  })
  // Those with ten signs, one for each digit: the others write numbers in words or with letters.
  const decimal = written.filter((text) => /^\p{Nd}{10}$/u.test(text))
  expect(decimal.length).toBeGreaterThan(60)
  for (const text of decimal) expect(typedCode(text), text).toBe('0123456789')
})

test('every decimal digit of Unicode is one of 0 to 9, each as often as any other', () => {
  const counts = new Map<string, number>()
  for (let point = 0; point <= 0x10_ff_ff; point++) {
    if (point >= 0xd8_00 && point <= 0xdf_ff) continue
    const text = String.fromCodePoint(point)
    if (/\p{Nd}/u.test(text)) counts.set(typedCode(text), (counts.get(typedCode(text)) ?? 0) + 1)
  }
  expect([...counts.keys()].sort()).toEqual([...'0123456789'])
  expect(new Set(counts.values()).size).toBe(1)
})

test.each([
  ['３９５２９０', '395290'],
  ['٣٩٥٢٩٠', '395290'],
  ['۳۹۵۲۹۰', '395290'],
  ['३९५२९०', '395290'],
  ['𝟛𝟡𝟝𝟚𝟡𝟘', '395290'],
  ['\u202a395\u00a0290\u202c.', '395290'],
  ['39\u200b52\ufeff90', '395290'],
  ['395–290', '395290'],
  ['ＢＣＤＦ－ＧＨＪＫ', 'BCDFGHJK'],
  ['bcdf—ghjk.', 'bcdfghjk'],
  ['“BCDF‑GHJK”', 'BCDFGHJK'],
  ['B\u0301C', 'BC'],
  ['Code: 395290', 'Code395290'],
  ['', ''],
])('%j is read as %j', (typed, code) => {
  expect(typedCode(typed)).toBe(code)
})
