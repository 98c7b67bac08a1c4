import { describe, expect, test } from 'vitest'
import { cleanIcon, cleanName } from '../../../src/browser/wallets/list.ts'

describe('a name that a wallet gives itself', () => {
  test.each([
    ['MetaMask', 'MetaMask'],
    ['  two \n\t lines  ', 'two lines'],
    // Would show as "MetaMask.exe" backwards, or turn what follows around.
    ['\u202eksaMateM\u202c', 'ksaMateM'],
    ['\u2066a\u2069\u200f\u061c', 'a'],
    ['zero\u200bwidth\ufeff', 'zerowidth'],
    ['bell\u0007 and \u0000 null', 'bell and null'],
    ['a\u2028b', 'a b'],
    ['محفظة', 'محفظة'],
    ['🦊 Fuchs', '🦊 Fuchs'],
    ['', 'none'],
    ['\u202e\u202e ', 'none'],
    [undefined, 'none'],
    [['MetaMask'], 'none'],
  ])('%j is shown as %j', (name, shown) => {
    expect(cleanName(name, 'none')).toBe(shown)
  })

  test('is cut at 60 characters, none of them in half', () => {
    const shown = cleanName('🦊'.repeat(100), 'none')
    expect([...shown]).toHaveLength(60)
    expect(shown).toBe(`${'🦊'.repeat(59)}…`)
    expect(cleanName('x'.repeat(60), 'none')).toBe('x'.repeat(60))
  })

  test('is read in parts only, however long it is', () => {
    expect(cleanName(`${' '.repeat(50_000_000)}x`, 'none')).toBe('none')
  })
})

describe('an icon that a wallet gives itself', () => {
  test.each([
    'data:image/svg+xml;base64,PHN2Zy8+',
    'data:image/svg+xml,%3Csvg/%3E',
    'data:image/png;base64,AAAA',
    'data:image/webp;base64,AAAA',
    'DATA:IMAGE/GIF;base64,AAAA',
    'data:image/jpeg;base64,AAAA',
  ])('%s is taken', (icon) => {
    expect(cleanIcon(` ${icon}\n`)).toEqual({ icon })
  })

  test.each([
    'https://tracker.example/icon.png',
    '//tracker.example/icon.png',
    'javascript:alert(1)',
    'data:text/html,<script>alert(1)</script>',
    'data:image/svg+xmlx,',
    'data:,x',
    'blob:https://app.example/1',
    '',
    undefined,
    { icon: 'data:image/png;base64,AAAA' },
    `data:image/png;base64,${'A'.repeat(300_000)}`,
  ])('%o is not', (icon) => {
    expect(cleanIcon(icon)).toEqual({})
  })
})
