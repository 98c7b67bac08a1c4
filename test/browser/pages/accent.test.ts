import { expect, test } from 'vitest'
import { accentOn, type Colour, contrast, cssColour, readColour } from '../../../src/browser/pages/brand.ts'

const surfaces = {
  light: ['#ffffff', '#e9efec'].map((text) => readColour(text) as Colour),
  dark: ['#131f1c', '#0b1311'].map((text) => readColour(text) as Colour),
}

test.each(Object.entries(surfaces))('every colour can be seen and written on in the %s scheme', (_, on) => {
  const steps = [0, 0x33, 0x66, 0x99, 0xcc, 0xff]
  for (const red of steps)
    for (const green of steps)
      for (const blue of steps) {
        const accent = accentOn(on, [red / 255, green / 255, blue / 255])
        const name = `${cssColour([red / 255, green / 255, blue / 255])} became ${cssColour(accent.area)}`
        expect(contrast(accent.area, accent.onArea), name).toBeGreaterThan(4.5)
        expect(contrast(accent.areaHover, accent.onArea), name).toBeGreaterThan(4.5)
        for (const surface of on) {
          expect(contrast(accent.area, surface), name).toBeGreaterThanOrEqual(1.5)
          expect(contrast(accent.ink, surface), name).toBeGreaterThanOrEqual(4.5)
        }
      }
})

test('a colour that can be seen is left as the operator wants it', () => {
  for (const text of ['#0b5b4d', '#1f6feb', '#b00020', '#ffb300']) {
    expect(cssColour(accentOn(surfaces.light, readColour(text) as Colour).area)).toBe(text)
  }
})

test('short and long forms are read, and nothing else', () => {
  expect(cssColour(readColour('#1AF') as Colour)).toBe('#11aaff')
  expect(cssColour(readColour(' #010203') as Colour)).toBe('#010203')
  for (const text of ['', 'red', '#12', '#12345', '#gggggg', 'rgb(1,2,3)']) expect(readColour(text)).toBe(undefined)
})
