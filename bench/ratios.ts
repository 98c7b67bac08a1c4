/** The table of ratios in bench/README.md: what a run is compared with, and what `--write` replaces. */
import { markdownTable } from './turns.ts'

/** Ratios by their names. */
export type Ratios = Readonly<Record<string, number>>

/** A ratio fails below this share of the one in the table. */
const slack = 0.8
const begin = '<!-- ratios: written by npm run bench -- --write -->'
const end = '<!-- end of ratios -->'

/** Reads the table. */
export function readRatios(readme: string): Ratios {
  const rows = partOf(readme).matchAll(/^\| (.*?) +\| +([\d.]+) \|$/gm)
  return Object.fromEntries(Array.from(rows, ([, name, ratio]) => [name, Number(ratio)]))
}

/** The document with these ratios in its table; those that were not measured stay. */
export function changedReadme(readme: string, measured: Ratios, where: string): string {
  const rows = Object.entries({ ...readRatios(readme), ...measured }).map(([name, ratio]) => [name, ratio.toFixed(2)])
  const part = `\n\n${where}\n\n${markdownTable(['ratio', ''], rows)}\n\n`
  return readme.slice(0, readme.indexOf(begin) + begin.length) + part + readme.slice(readme.indexOf(end))
}

/** The names of the ratios that are a fifth or more below those of the table. */
export function tooLow(measured: Ratios, expected: Ratios): string[] {
  return Object.entries(measured)
    .filter(([name, ratio]) => !(ratio >= slack * (expected[name] ?? 0)))
    .map(([name]) => name)
}

function partOf(readme: string): string {
  const [from, to] = [readme.indexOf(begin), readme.indexOf(end)]
  if (from === -1 || to < from) throw new Error('bench/README.md has no place for the ratios')
  return readme.slice(from + begin.length, to)
}
