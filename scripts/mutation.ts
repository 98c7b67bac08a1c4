import { globSync, readFileSync } from 'node:fs'
import { parseAst } from 'vitest/node'
import { root } from './working-copy.ts'

/** A defence that is taken out, and the tests that have to notice. */
export interface Mutation {
  /** Number of the row of SECURITY.md's table that names the defence. */
  readonly row: number
  /**
   * Name of the function, method, class or constant of src that has the defence, in whatever file it is. With a slash:
   * a file that is no TypeScript.
   */
  readonly within: string
  /** Text of it that is replaced. Any white space stands for any other. There is one such place under this name. */
  readonly find: string
  readonly replace: string
  /** Test files, at least one of which has to fail. The row names each of them. */
  readonly tests: readonly string[]
  /** Seed of a simulated world that notices, which is run in place of the tests. */
  readonly seed?: number | undefined
}

/** Where a mutation applies. */
export interface Place {
  /** Path in the repository. */
  readonly file: string
  readonly start: number
  readonly end: number
}

/** Options of `npm run world` for the worlds that have the code of a place. */
export function worldOf({ file }: Place): readonly string[] {
  return file.startsWith('src/oidc/') ? ['--issuer'] : []
}

interface Source {
  readonly file: string
  readonly text: string
  /** Where each name is declared, from the first to the last character of the declaration. */
  declarations?: ReadonlyMap<string, readonly (readonly [start: number, end: number])[]>
}

let sources: readonly Source[] | undefined

/** Every place to which a mutation applies: one, unless the code or the entry has changed. */
export function placesOf({ within, find }: Pick<Mutation, 'within' | 'find'>): readonly Place[] {
  if (within.includes('/')) return matches(read(within), find)
  sources ??= globSync('src/**/*.ts', { cwd: root }).map(read)
  const places = sources
    .filter(({ text }) => text.includes(within))
    .flatMap((source) => {
      const found = matches(source, find)
      if (found.length === 0) return []
      source.declarations ??= declarationsIn(source)
      const declarations = source.declarations.get(within) ?? []
      return found.filter((place) => declarations.some(([start, end]) => start <= place.start && place.end <= end))
    })
  return places
}

function read(file: string): Source {
  return { file, text: readFileSync(root + file, 'utf8') }
}

function matches({ file, text }: Source, find: string): Place[] {
  const words = find.trim().split(/\s+/)
  const pattern = new RegExp(words.map((word) => word.replace(/[\\^$.*+?()[\]{}|]/g, '\\$&')).join('\\s+'), 'g')
  return [...text.matchAll(pattern)].map(({ 0: found, index }) => ({ file, start: index, end: index + found.length }))
}

/** The part of a node of the syntax tree that is used here. */
interface Node {
  readonly type?: string
  readonly start: number
  readonly end: number
  readonly id?: { readonly name?: string } | null
  readonly key?: { readonly name?: string; readonly value?: unknown }
}

function declarationsIn({ file, text }: Source): Map<string, [number, number][]> {
  const found = new Map<string, [number, number][]>()
  const visit = (node: Node): void => {
    const name = node.id?.name ?? node.key?.name ?? node.key?.value
    if (typeof name === 'string') found.set(name, [...(found.get(name) ?? []), [node.start, node.end]])
    for (const child of Object.values(node)) if (typeof child === 'object' && child !== null) visit(child)
  }
  visit(parseAst(text, { lang: 'ts' }, file) as unknown as Node)
  return found
}
