/** Pictures of a run as SVG text. They follow the reader's choice of light or dark. */

/** A point of a line: time in ms, value in the unit of its panel. */
export type Point = readonly [at: number, value: number]

/** A line of a panel. A colour stands for the same in all panels of a picture. */
export interface Line {
  readonly colour: Colour
  /** Pieces that are not joined, as those of a process and of the one after it. */
  readonly pieces: readonly (readonly Point[])[]
}

export type Colour = 'first' | 'second'

/** One small diagram over the time of the run. */
export interface Panel {
  readonly title: string
  readonly lines: readonly Line[]
  readonly scale: 'linear' | 'logarithmic'
  /** Values at the ticks, in words. */
  readonly format: (value: number) => string
}

/** A time in which a part was away. */
export interface Mark {
  readonly name: string
  readonly from: number
  readonly to: number
}

export interface Picture {
  readonly title: string
  readonly legend: readonly { readonly colour: Colour; readonly name: string }[]
  readonly columns: number
  /** Row by row. */
  readonly panels: readonly Panel[]
  readonly marks: readonly Mark[]
  /** Length of the run, ms. */
  readonly lengthMs: number
}

const panel = { width: 300, height: 96, left: 52, top: 26, right: 12, bottom: 22 }
const head = 58

const style = `
text{font:11px system-ui,sans-serif;fill:#52514e}
.title{font-size:15px;font-weight:600;fill:#0b0b0b}
.name{font-size:12px;font-weight:600;fill:#0b0b0b}
.paper{fill:#fcfcfb}.grid{stroke:#e4e3df;stroke-width:1}.mark{fill:#898781;fill-opacity:.2}
path{fill:none;stroke-width:1.6;stroke-linejoin:round}
.first{stroke:#2a78d6}.second{stroke:#eb6834}
.key.first{fill:#2a78d6}.key.second{fill:#eb6834}
@media(prefers-color-scheme:dark){
text{fill:#c3c2b7}.title,.name{fill:#fff}
.paper{fill:#1a1a19}.grid{stroke:#383835}.mark{fill:#a9a79f;fill-opacity:.22}
.first{stroke:#3987e5}.second{stroke:#d95926}
.key.first{fill:#3987e5}.key.second{fill:#d95926}}`

/** Draws a picture. */
export function svgOf({ title, legend, columns, panels, marks, lengthMs }: Picture): string {
  const cell = {
    width: panel.left + panel.width + panel.right,
    height: panel.top + panel.height + panel.bottom,
  }
  const rows = Math.ceil(panels.length / columns)
  const width = columns * cell.width
  const height = head + rows * cell.height + 8
  const keys = legend.map(({ colour, name }, index) => {
    const x = 14 + index * 110
    return `<rect class="key ${colour}" x="${x}" y="36" width="14" height="3"/>${text(x + 20, 41, name)}`
  })
  const markKey =
    marks.length === 0
      ? ''
      : `<rect class="mark" x="${14 + legend.length * 110}" y="31" width="14" height="12"/>${text(
          34 + legend.length * 110,
          41,
          marks.map(({ name }) => name).join(', '),
        )}`
  const drawn = panels.map((each, index) => {
    const x = (index % columns) * cell.width + panel.left
    const y = head + Math.floor(index / columns) * cell.height + panel.top
    return `<g transform="translate(${x} ${y})">${panelOf(each, marks, lengthMs)}</g>`
  })
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" role="img">`,
    `<title>${escaped(title)}</title><style>${style}</style>`,
    `<rect class="paper" width="${width}" height="${height}"/>`,
    text(14, 22, title, 'title'),
    ...keys,
    markKey,
    ...drawn,
    '</svg>\n',
  ].join('\n')
}

function panelOf({ title, lines, scale, format }: Panel, marks: readonly Mark[], lengthMs: number): string {
  const values = lines.flatMap(({ pieces }) => pieces.flat().map(([, value]) => value)).filter(Number.isFinite)
  const [least, most] = values.length === 0 ? [1, 10] : [Math.min(...values), Math.max(...values)]
  const ticks = ticksOf(least as number, most as number, scale)
  const [low = 0] = ticks
  const high = ticks.at(-1) ?? 1
  const placed = (value: number): number =>
    scale === 'linear' ? (value - low) / (high - low) : Math.log(value / low) / Math.log(high / low)
  const x = (at: number): number => round(Math.min(1, Math.max(0, at / lengthMs)) * panel.width)
  const y = (value: number): number => round((1 - placed(Math.max(value, low))) * panel.height)
  const grid = ticks.map(
    (tick) =>
      `<line class="grid" x1="0" x2="${panel.width}" y1="${y(tick)}" y2="${y(tick)}"/>` +
      text(-6, y(tick) + 4, format(tick), undefined, 'end'),
  )
  const shaded = marks.map(
    ({ name, from, to }) =>
      `<rect class="mark" x="${x(from)}" y="0" width="${Math.max(1, round(x(to) - x(from)))}" height="${panel.height}">` +
      `<title>${escaped(name)}</title></rect>`,
  )
  const drawn = lines.flatMap(({ colour, pieces }) =>
    pieces
      .filter((piece) => piece.length > 0)
      .map((piece) => `<path class="${colour}" d="M${piece.map(([at, value]) => `${x(at)} ${y(value)}`).join('L')}"/>`),
  )
  const minutes = [0, 0.5, 1].map((share) => {
    const anchor = share === 0 ? 'start' : share === 1 ? 'end' : 'middle'
    const label = `${round((share * lengthMs) / 60_000)} min`
    return text(share * panel.width, panel.height + 15, label, undefined, anchor)
  })
  return [text(0, -8, title, 'name'), ...shaded, ...grid, ...drawn, ...minutes].join('')
}

/** Two to five round values around a range. */
export function ticksOf(least: number, most: number, scale: Panel['scale']): number[] {
  if (scale === 'logarithmic') {
    const from = Math.floor(Math.log10(Math.max(least, 0.01)))
    const to = Math.max(from + 1, Math.ceil(Math.log10(Math.max(most, 0.01))))
    return Array.from({ length: to - from + 1 }, (_, index) => 10 ** (from + index))
  }
  // At least a tenth of the value, so that noise does not look like a mountain.
  const span = Math.max(most - least, most / 10, Number.EPSILON)
  const rough = span / 3
  const unit = 10 ** Math.floor(Math.log10(rough))
  const step = ([1, 2, 5, 10].find((factor) => factor * unit >= rough) ?? 10) * unit
  const first = Math.floor(least / step)
  const last = Math.max(first + 1, Math.ceil(most / step))
  return Array.from({ length: last - first + 1 }, (_, index) => (first + index) * step)
}

function text(x: number, y: number, words: string, name?: string, anchor?: string): string {
  const attributes = `${name === undefined ? '' : ` class="${name}"`}${anchor === undefined ? '' : ` text-anchor="${anchor}"`}`
  return `<text x="${round(x)}" y="${round(y)}"${attributes}>${escaped(words)}</text>`
}

function round(value: number): number {
  return Math.round(value * 10) / 10
}

function escaped(words: string): string {
  return words.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;')
}
