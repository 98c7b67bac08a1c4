import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { formatMs, machine } from '../harness.ts'
import { protocols } from './calls.ts'
import { kib, seconds } from './findings.ts'
import { type Picture, type Point, svgOf } from './picture.ts'
import type { Plant } from './plants.ts'
import type { ProcessRecord, ScenarioRecord } from './scenario.ts'
import { growthOf, percentileOf, stretchesOf } from './statistics.ts'
import { timedKinds } from './visits.ts'

/** What a report says of the run itself. */
export interface ReportOptions {
  readonly minutes: number
  readonly rate: number
  readonly startedAt: Date
  readonly commit: string
  readonly plant: Plant | undefined
}

/** Stretches of a run, of each of which the pictures have a point. */
const stretches = 60

/** Writes a report into a folder: README.md, and two pictures for each scenario. */
export async function writeReport(
  folder: string,
  records: readonly ScenarioRecord[],
  { minutes, rate, startedAt, commit, plant }: ReportOptions,
): Promise<void> {
  await mkdir(folder, { recursive: true })
  const findings = records.flatMap((record) => record.findings)
  const planted = plant === undefined ? [] : [`A leak was planted into the servers: ${plant}.`, '']
  const text = [
    '# Soak',
    '',
    `${minutes} minutes, ${rate} visits a second on each scenario, ${startedAt.toISOString().slice(0, 16)}Z, commit ${commit}.`,
    `${machine()}. All scenarios ran beside each other, with the load, on these cores.`,
    '',
    ...planted,
    findings.length === 0 ? 'Nothing was found.' : `Found:\n\n${findings.map((finding) => `- ${finding}`).join('\n')}`,
    '',
    ...records.flatMap(sectionOf),
  ].join('\n')
  await writeFile(join(folder, 'README.md'), text)
  for (const record of records) {
    await writeFile(join(folder, `${record.id}-latency.svg`), svgOf(latencyPicture(record)))
    await writeFile(join(folder, `${record.id}-memory.svg`), svgOf(memoryPicture(record)))
  }
}

function sectionOf(record: ScenarioRecord): string[] {
  const { title, id, windows, visits, failures, processes, before, after, logCounts, secondHalfFrom } = record
  const heading = `${title[0]?.toUpperCase()}${title.slice(1)}`
  const disturbed = Map.groupBy(failures, ({ reason }) => reason)
  const mib = (bytes: number): string => (bytes / 1024 / 1024).toFixed(1)
  return [
    `## ${heading}`,
    '',
    table(
      ['part', 'away from', 'failures may show until', 'reasons that may show'],
      windows.map(({ name, from, to, allows }) => [name, seconds(from), seconds(to), allows.join(', ') || 'none']),
    ),
    `![Time of calls](${id}-latency.svg)`,
    '',
    'Times of calls and events without a restart in their way, whole run. An event is late by the time from the answer to whoever',
    'changed the order until the watcher has it.',
    '',
    table(['', 'over', 'times', 'p50', 'p99', 'longest'], timeRows(record)),
    `![Memory](${id}-memory.svg)`,
    '',
    'Memory in MiB, heap without garbage. Growth is that of a line through the second half of the run.',
    '',
    table(
      ['process', 'heap, median', 'its growth', 'resident, median', 'its growth', 'heap when idle, after the load'],
      processes.map(({ name, from, samples, idle }) => {
        const inHalf = samples.filter(({ at }) => at >= Math.max(secondHalfFrom, from))
        const of = (field: 'heapUsed' | 'rss'): string[] => {
          const points = inHalf.map((sample) => ({ at: sample.at, value: sample[field] }))
          if (points.length === 0) return ['', '']
          return [
            mib(
              percentileOf(
                points.map(({ value }) => value),
                0.5,
              ),
            ),
            kib(growthOf(points)),
          ]
        }
        return [name, ...of('heapUsed'), ...of('rss'), idle === undefined ? '' : mib(idle.memory.heapUsed)]
      }),
    ),
    `What idle servers hold, before the load and after it (settled after ${seconds(after.settledMs)}).`,
    '',
    table(['', 'before', ...idleOf(processes).map(({ name }) => name)], heldRows(record)),
    table(
      ['keys in the store', 'number', 'of them for ever', 'longest life left, s'],
      after.keys.map(({ kind, count, forever, longestSeconds }) => [kind, count, forever, longestSeconds].map(String)),
    ),
    table(
      ['visits', 'made', 'that did not go as they should'],
      Object.entries(visits).map(([name, { made, disturbed: hit }]) => [name, String(made), String(hit)]),
    ),
    ...(disturbed.size === 0
      ? []
      : [
          table(
            ['visits that did not', 'number', 'first', 'last'],
            [...disturbed].map(([reason, all]) => [
              reason,
              String(all.length),
              seconds(Math.min(...all.map(({ to }) => to))),
              seconds(Math.max(...all.map(({ to }) => to))),
            ]),
          ),
        ]),
    table(
      ['lines of the log', 'number'],
      Object.entries(logCounts).map(([line, count]) => [line, String(count)]),
    ),
    `Connections and subscriptions before: ${held(before.holds)}; after: ${held(after.holds)}.`,
    '',
  ]
}

function held(holds: Readonly<Record<string, number>>): string {
  const all = Object.entries(holds).map(([what, count]) => `${what} ${count}`)
  return all.length === 0 ? 'none' : all.join(', ')
}

function idleOf(processes: readonly ProcessRecord[]): ProcessRecord[] {
  return processes.filter(({ idle }) => idle !== undefined)
}

function heldRows({ before, processes }: ScenarioRecord): string[][] {
  const idle = idleOf(processes)
  const kinds = (pick: (each: ProcessRecord) => Readonly<Record<string, number>> | undefined): string[] => [
    ...new Set(idle.flatMap((each) => Object.keys(pick(each) ?? {}))),
  ]
  const row = (
    kind: string,
    base: number | undefined,
    pick: (each: ProcessRecord) => Readonly<Record<string, number>> | undefined,
  ): string[] => [kind, base === undefined ? '' : String(base), ...idle.map((each) => String(pick(each)?.[kind] ?? 0))]
  const objects = (each: ProcessRecord) => each.idle?.objects.objects
  const resources = (each: ProcessRecord) => each.idle?.objects.resources
  const gauges = (each: ProcessRecord) => each.idle?.gauges
  return [
    ...kinds(objects).map((kind) => row(kind, before.objects.objects[kind], objects)),
    ...kinds(resources).map((kind) => row(kind, before.objects.resources[kind] ?? 0, resources)),
    ...kinds(gauges).map((kind) => row(kind, undefined, gauges)),
  ]
}

function timeRows({ times, windows }: ScenarioRecord): string[][] {
  const calm = times.filter(({ at, value }) => !windows.some(({ from, to }) => at <= to && at + value >= from))
  return timedKinds.flatMap((kind) =>
    protocols.flatMap((protocol) => {
      const values = calm.filter((time) => time.kind === kind && time.protocol === protocol).map(({ value }) => value)
      if (values.length === 0) return []
      const cells = [0.5, 0.99, 1].map((share) => formatMs(percentileOf(values, share)))
      return [[kind, protocol, String(values.length), ...cells]]
    }),
  )
}

function latencyPicture({ title, times, windows, loadMs }: ScenarioRecord): Picture {
  const stretchMs = loadMs / stretches
  const panels = timedKinds.flatMap((kind) =>
    protocols.map((protocol) => {
      const all = stretchesOf(
        // What is shorter than 10 µs cannot be told from it, and has no place on the scale.
        times
          .filter((time) => time.kind === kind && time.protocol === protocol)
          .map((time) => ({ ...time, value: Math.max(0.01, time.value) })),
        stretchMs,
      )
      const points = (field: 'p50' | 'p99'): Point[] => all.map((stretch) => [stretch.at, stretch[field]])
      return {
        title: `${kind}, ${protocol}`,
        scale: 'logarithmic' as const,
        format: (ms: number) => (ms >= 1000 ? `${ms / 1000} s` : `${Number(ms.toPrecision(1))} ms`),
        lines: [
          { colour: 'first' as const, pieces: [points('p50')] },
          { colour: 'second' as const, pieces: [points('p99')] },
        ],
      }
    }),
  )
  return {
    title: `Times over the run, ${title}`,
    legend: [
      { colour: 'first', name: 'p50' },
      { colour: 'second', name: 'p99' },
    ],
    columns: protocols.length,
    panels,
    marks: windows,
    lengthMs: loadMs,
  }
}

function memoryPicture({ title, processes, windows, loadMs }: ScenarioRecord): Picture {
  const instances = [...Map.groupBy(processes, ({ name }) => name.split(',')[0] ?? name)]
  const panelsOf = (field: 'heapUsed' | 'rss', what: string, colour: 'first' | 'second') =>
    instances.map(([name, all]) => ({
      title: `${what}, instance ${name}`,
      scale: 'linear' as const,
      format: (value: number) => `${Number(value.toPrecision(3))} MiB`,
      lines: [
        {
          colour,
          pieces: all.map(({ samples }) => samples.map((sample): Point => [sample.at, sample[field] / 1024 / 1024])),
        },
      ],
    }))
  return {
    title: `Memory over the run, ${title}`,
    legend: [
      { colour: 'first', name: 'heap' },
      { colour: 'second', name: 'resident' },
    ],
    columns: instances.length === 1 ? 2 : instances.length,
    panels: [...panelsOf('heapUsed', 'heap without garbage', 'first'), ...panelsOf('rss', 'resident', 'second')],
    marks: windows,
    lengthMs: loadMs,
  }
}

/** A table in Markdown: the first column to the left, all others to the right if they begin with a digit. */
function table(titles: readonly string[], rows: readonly (readonly string[])[]): string {
  const line = (cells: readonly string[]): string => `| ${cells.join(' | ')} |`
  const isNumber = (column: number): boolean => rows.every((row) => /^-?\d|^$/.test(row[column] ?? ''))
  const rule = line(titles.map((_, column) => (column > 0 && isNumber(column) ? '---:' : '---')))
  return [line(titles), rule, ...rows.map(line), ''].join('\n')
}
