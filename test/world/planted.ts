import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { availableParallelism, tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseAst } from 'vitest/node'
import { type Mutation, placesOf, worldOf } from '../../scripts/mutation.ts'
import { mutations } from '../../scripts/mutations.ts'
import { copyWorkingTree, root } from '../../scripts/working-copy.ts'

/** Most steps at the store of a search for a seed that finds a planted fault. */
const mostCalls = 100_000

/** What a world found of a planted fault. */
interface Found {
  readonly seed: number
  /** Steps at the store of the worlds before it and of itself. */
  readonly calls: number
  readonly violation: string
}

/**
 * Plants the mutations that have a seed, or those that fit a text, one at a time, and prints what finds each: its seed,
 * or else the first from seed 1 on within 100,000 steps at the store. With `writes`, these seeds are written to
 * `scripts/mutations.ts`. Resolves with the number of those that were not found.
 */
export async function plant(
  texts: readonly string[],
  { writes, steps }: { readonly writes: boolean; readonly steps: string | undefined },
): Promise<number> {
  const asked = mutations.filter((mutation) =>
    texts.length === 0 ? mutation.seed !== undefined : texts.some((text) => fits(mutation, text)),
  )
  const queue = [...asked]
  const seeds = new Map<Mutation, number>()
  const work = async (): Promise<void> => {
    const copy = mkdtempSync(join(tmpdir(), 'countersign-world-'))
    process.once('exit', () => rmSync(copy, { recursive: true, force: true }))
    copyWorkingTree(copy)
    for (let mutation = queue.shift(); mutation !== undefined; mutation = queue.shift()) {
      const found = await find(mutation, copy, steps)
      if (found !== undefined) seeds.set(mutation, found.seed)
      console.log(lineOf(mutation, found))
    }
  }
  await Promise.all(Array.from({ length: Math.min(availableParallelism(), asked.length) }, work))
  console.log(`${asked.length} planted faults: ${seeds.size} found, ${asked.length - seeds.size} not found`)
  if (writes) writeSeeds(seeds)
  return asked.length - seeds.size
}

function fits(mutation: Mutation, text: string): boolean {
  const { row, within, find } = mutation
  return String(row) === text || `${placesOf(mutation)[0]?.file} ${within} ${find}`.includes(text)
}

/** The world that finds a mutation, in a copy of the working tree. */
async function find(mutation: Mutation, copy: string, steps: string | undefined): Promise<Found | undefined> {
  const { seed, replace } = mutation
  const [place, ...others] = placesOf(mutation)
  if (place === undefined || others.length > 0) return undefined
  const path = join(copy, place.file)
  const original = readFileSync(path, 'utf8')
  writeFileSync(path, original.slice(0, place.start) + replace + original.slice(place.end))
  const kind = worldOf(place)
  const length = steps === undefined ? [] : ['--steps', steps]
  try {
    const known = seed === undefined ? undefined : await run(copy, ['--seed', String(seed), ...kind])
    return known ?? (await run(copy, ['--seed', '1', '--calls', String(mostCalls), ...kind, ...length]))
  } finally {
    writeFileSync(path, original)
  }
}

async function run(copy: string, args: readonly string[]): Promise<Found | undefined> {
  const child = spawn(process.execPath, [join(copy, 'test/world/main.ts'), '--brief', ...args], {
    cwd: copy,
    stdio: ['ignore', 'pipe', 'ignore'],
  })
  let printed = ''
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    printed += text
  })
  await once(child, 'close')
  const [, seed, violation = ''] = /^seed (\d+): (.*)$/m.exec(printed) ?? []
  const [, calls] = / (\d+) \(\d+ a second\) steps at the store/.exec(printed) ?? []
  return seed === undefined ? undefined : { seed: Number(seed), calls: Number(calls), violation }
}

/** A line of the table. */
function lineOf(mutation: Mutation, found: Found | undefined): string {
  const { row, within, find, seed } = mutation
  const result =
    found === undefined ? 'NOT FOUND' : found.seed === seed ? `seed ${seed}` : `seed ${seed ?? '-'} → ${found.seed}`
  const calls = found === undefined ? '' : String(found.calls)
  const text = find.replaceAll(/\s+/g, ' ').slice(0, 60)
  return [result.padEnd(16), calls.padStart(6), `row ${row}, ${within}: ${text}`, found?.violation ?? ''].join(' | ')
}

/** The part of a node of a syntax tree that is used here. */
interface Node {
  readonly end: number
  readonly type?: string
  readonly value?: unknown
  readonly elements?: readonly Node[]
}

/** Writes seeds into the entries of `scripts/mutations.ts`. */
function writeSeeds(seeds: ReadonlyMap<Mutation, number>): void {
  const file = join(root, 'scripts/mutations.ts')
  let text = readFileSync(file, 'utf8')
  const entries: (readonly Node[])[] = []
  const visit = (node: Node): void => {
    if (node.type === 'ArrayExpression' && node.elements !== undefined && node.elements.length >= 4) {
      entries.push(node.elements)
    }
    for (const child of Object.values(node)) if (typeof child === 'object' && child !== null) visit(child as Node)
  }
  visit(parseAst(text, { lang: 'ts' }, file) as unknown as Node)
  // From the end: what is written does not move what is before it.
  for (const [within, find, replace, tests] of entries.reverse()) {
    const seed = [...seeds].find(
      ([mutation]) =>
        mutation.within === within?.value && mutation.find === find?.value && mutation.replace === replace?.value,
    )?.[1]
    if (seed === undefined || tests === undefined) continue
    const rest = text.slice(tests.end).replace(/^\s*,\s*\d+/, '')
    text = `${text.slice(0, tests.end)}, ${seed}${rest}`
  }
  writeFileSync(file, text)
  execFileSync('npx', ['--no-install', 'biome', 'format', '--write', file], { cwd: root })
}
