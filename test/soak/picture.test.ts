import { describe, expect, test } from 'vitest'
import { type Picture, svgOf, ticksOf } from '../../bench/soak/picture.ts'

const picture: Picture = {
  title: 'Times <of> calls & events',
  legend: [{ colour: 'first', name: 'p50' }],
  columns: 1,
  panels: [
    {
      title: 'sign-in',
      scale: 'linear',
      format: String,
      lines: [
        {
          colour: 'first',
          pieces: [
            [
              [0, 0],
              [30_000, 10],
            ],
            [[60_000, 20]],
          ],
        },
      ],
    },
    { title: 'nothing', scale: 'logarithmic', format: String, lines: [{ colour: 'second', pieces: [[]] }] },
  ],
  marks: [{ name: 'Redis restarts', from: 15_000, to: 30_000 }],
  lengthMs: 60_000,
}

describe('a picture', () => {
  const svg = svgOf(picture)

  test('is a document of its own, and its words are escaped', () => {
    expect(svg).toMatch(/^<svg xmlns="http:\/\/www\.w3\.org\/2000\/svg" /)
    expect(svg).toContain('Times &lt;of&gt; calls &amp; events')
    for (const [, tag] of svg.matchAll(/<(svg|g|text|title|style)\b/g)) {
      expect(svg.split(`<${tag}`).length, tag).toBe(svg.split(`</${tag}>`).length)
    }
  })

  test('has a line for each piece, over time and from its lowest tick up', () => {
    expect([...svg.matchAll(/d="([^"]+)"/g)].map(([, path]) => path)).toEqual(['M0 96L150 48', 'M300 0'])
  })

  test('has a mark in each panel for the time in which a part was away', () => {
    expect(svg.match(/<rect class="mark" x="75" y="0" width="75"/g)).toHaveLength(2)
    expect(svg).toContain('<title>Redis restarts</title>')
  })

  test('has colours for light and for dark', () => {
    expect(svg).toContain('prefers-color-scheme:dark')
  })

  test('has no number that is none', () => {
    expect(svg).not.toMatch(/NaN|Infinity|undefined/)
  })
})

describe('ticks', () => {
  test('are round, and enclose the values', () => {
    expect(ticksOf(31.2, 48.9, 'linear')).toEqual([30, 40, 50])
    expect(ticksOf(0.4, 220, 'logarithmic')).toEqual([0.1, 1, 10, 100, 1000])
  })

  test('do not make a mountain of noise', () => {
    const ticks = ticksOf(100, 100.001, 'linear')
    expect((ticks.at(-1) ?? 0) - (ticks[0] ?? 0)).toBeGreaterThanOrEqual(5)
  })
})
