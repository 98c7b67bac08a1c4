import { readFileSync } from 'node:fs'
import { builtinModules } from 'node:module'
import { dirname, join } from 'node:path'

/** A declaration of a module. */
export interface Declaration {
  /** Absolute path of the .d.ts file. */
  readonly file: string
  readonly name: string
}

/** What the signatures of a module's exports name. */
export interface Reachable {
  /** The module's own exports. */
  readonly exported: readonly Declaration[]
  /**
   * Every type that can be met by following types from the exports on, the exports included. Constants are followed,
   * but are none: nobody has to name what a type was computed from.
   */
  readonly types: readonly Declaration[]
  /** Functions that are named by `typeof`. Their own types are not followed. */
  readonly functions: readonly Declaration[]
  /** Packages whose types are named, without Node's own modules. */
  readonly packages: readonly string[]
}

type Token = { readonly text: string; readonly kind: 'word' | 'string' | 'mark' }

/** Where a name of a module comes from. */
type Source = { readonly specifier: string; readonly name: string }

interface Module {
  readonly declarations: ReadonlyMap<string, readonly Token[]>
  readonly imports: ReadonlyMap<string, Source>
  readonly exports: ReadonlyMap<string, Source | { readonly local: string }>
  /** Modules of which everything is exported. */
  readonly wholes: readonly string[]
}

const wholeModule = '*'

/**
 * Follows the types that a module's exports name. It reads what `tsc` emits, which is more regular than what people
 * write: this is no parser of TypeScript. Only names that begin with a capital are taken for types.
 */
export function reachableFrom(entry: string): Reachable {
  const exported = exportsOf(entry)
  const seen = new Map(exported.map((each) => [keyOf(each), each]))
  const functions = new Map<string, Declaration>()
  const packages = new Set<string>()
  // A Map hands out what is added while it is walked.
  for (const { file, name } of seen.values()) {
    for (const { source, byTypeof } of referencesOf(file, name)) {
      if (source.specifier.startsWith('node:') || builtinModules.includes(source.specifier)) continue
      if (!source.specifier.startsWith('.')) {
        packages.add(packageOf(source.specifier))
        continue
      }
      const found = resolve(pathOf(file, source.specifier), source.name)
      if (found.package !== undefined) packages.add(found.package)
      else if (byTypeof && kindOf(found.declaration) === 'function') {
        functions.set(keyOf(found.declaration), found.declaration)
      } else if (!seen.has(keyOf(found.declaration))) seen.set(keyOf(found.declaration), found.declaration)
    }
  }
  return {
    exported,
    types: [...seen.values()].filter((each) => kindOf(each) !== 'const'),
    functions: [...functions.values()],
    packages: [...packages].sort(),
  }
}

/** The keyword that a declaration begins with. */
function kindOf({ file, name }: Declaration): string {
  return read(file).declarations.get(name)?.[0]?.text ?? ''
}

/** The declarations that a module exports, wherever they are written. */
function exportsOf(file: string): Declaration[] {
  const { exports, wholes } = read(file)
  return [
    ...[...exports.keys()].map((name) => resolve(file, name).declaration).filter((found) => found !== undefined),
    ...wholes.flatMap((specifier) => exportsOf(pathOf(file, specifier))),
  ]
}

type Resolved =
  | { readonly declaration: Declaration; readonly package?: undefined }
  | { readonly declaration?: undefined; readonly package: string }

/** Finds where a name that a module exports, or has for itself, is declared. */
function resolve(file: string, name: string): Resolved {
  const module = read(file)
  const target = module.exports.get(name) ?? { local: name }
  if ('local' in target && module.declarations.has(target.local)) return { declaration: { file, name: target.local } }
  const source = 'local' in target ? module.imports.get(target.local) : target
  if (source !== undefined) {
    if (!source.specifier.startsWith('.')) return { package: packageOf(source.specifier) }
    return resolve(pathOf(file, source.specifier), source.name)
  }
  for (const specifier of module.wholes) {
    const path = pathOf(file, specifier)
    if (exportsOf(path).some((each) => each.name === name)) return resolve(path, name)
  }
  throw new Error(`${file} has no ${name}`)
}

/** The names that a declaration uses, with where its module has them from. */
function* referencesOf(file: string, name: string): Generator<{ source: Source; byTypeof: boolean }> {
  const { declarations, imports } = read(file)
  const tokens = declarations.get(name) ?? []
  for (const [i, { text, kind }] of tokens.entries()) {
    const before = tokens[i - 1]?.text
    if (text === 'import' && tokens[i + 1]?.text === '(') {
      // import("./x.ts").Name
      yield {
        source: { specifier: tokens[i + 2]?.text ?? '', name: tokens[i + 5]?.text ?? '' },
        byTypeof: before === 'typeof',
      }
      continue
    }
    const byTypeof = before === 'typeof'
    if (kind !== 'word' || before === '.' || text === name || !(byTypeof || /^[A-Z]/.test(text))) continue
    const imported = imports.get(text)
    if (imported?.name === wholeModule) {
      yield { source: { ...imported, name: tokens[i + 2]?.text ?? '' }, byTypeof }
    } else if (imported !== undefined) yield { source: imported, byTypeof }
    else if (declarations.has(text))
      yield { source: { specifier: `./${file.split('/').at(-1)}`, name: text }, byTypeof }
  }
}

const modules = new Map<string, Module>()

function read(file: string): Module {
  const known = modules.get(file)
  if (known !== undefined) return known
  const module = parse(tokensOf(readFileSync(file, 'utf8')))
  modules.set(file, module)
  return module
}

function parse(tokens: readonly Token[]): Module {
  const declarations = new Map<string, Token[]>()
  const imports = new Map<string, Source>()
  const exports = new Map<string, Source | { local: string }>()
  const wholes: string[] = []
  for (const statement of statementsOf(tokens)) {
    const words = statement.filter(({ text }) => text !== 'type')
    const [first, second] = words.map(({ text }) => text)
    const specifier = words.find(({ kind }) => kind === 'string')?.text ?? ''
    if (first === 'import') {
      for (const [name, as] of namesIn(words)) imports.set(as, { specifier, name })
      const at = words.findIndex(({ text }) => text === 'as')
      if (second === '*') imports.set(words[at + 1]?.text ?? '', { specifier, name: wholeModule })
    } else if (first === 'export' && second === '{') {
      for (const [name, as] of namesIn(words)) exports.set(as, specifier === '' ? { local: name } : { specifier, name })
    } else if (first === 'export' && second === '*') {
      wholes.push(specifier)
    } else {
      const at = statement.findIndex(({ text }) => /^(interface|type|class|function|const|enum)$/.test(text))
      const name = statement[at + 1]?.text
      if (at === -1 || name === undefined || statement[1]?.text === 'global') continue
      // An overload, or an interface that is written in parts.
      declarations.set(name, [...(declarations.get(name) ?? []), ...statement.slice(at)])
      if (first === 'export') exports.set(name, { local: name })
    }
  }
  return { declarations, imports, exports, wholes }
}

/** The pairs of `{ a, b as c }`. */
function namesIn(words: readonly Token[]): [name: string, as: string][] {
  const inside = words.slice(
    words.findIndex(({ text }) => text === '{') + 1,
    words.findIndex(({ text }) => text === '}'),
  )
  return inside.flatMap(({ text, kind }, i) => {
    if (kind !== 'word' || text === 'as' || inside[i - 1]?.text === 'as') return []
    return [[text, inside[i + 1]?.text === 'as' ? (inside[i + 2]?.text ?? text) : text]]
  })
}

/** Top-level statements: to a semicolon, or to the brace that closes an interface, a class or a block. */
function statementsOf(tokens: readonly Token[]): Token[][] {
  const statements: Token[][] = []
  let statement: Token[] = []
  let depth = 0
  for (const token of tokens) {
    const { text, kind } = token
    if (kind === 'mark' && '{(['.includes(text)) depth++
    if (kind === 'mark' && '})]'.includes(text)) depth--
    if (depth > 0 || text !== ';') statement.push(token)
    const block = statement.slice(0, 4).some((each) => /^(interface|class|enum|global|namespace)$/.test(each.text))
    if (depth === 0 && (text === ';' || (text === '}' && block))) {
      if (statement.length > 0) statements.push(statement)
      statement = []
    }
  }
  return statements
}

function tokensOf(text: string): Token[] {
  const tokens: Token[] = []
  for (const [all, string, word] of text.matchAll(
    /\/\*[\s\S]*?\*\/|\/\/.*|('(?:\\.|[^'\\])*'|"(?:\\.|[^"\\])*")|([A-Za-z_$#][\w$]*)|[^\s\w]/g,
  )) {
    if (string !== undefined) tokens.push({ text: string.slice(1, -1), kind: 'string' })
    else if (word !== undefined) tokens.push({ text: word, kind: 'word' })
    else if (!/^\/[*/]/.test(all)) tokens.push({ text: all, kind: 'mark' })
  }
  return tokens
}

function pathOf(from: string, specifier: string): string {
  return join(dirname(from), specifier.replace(/(\.d)?\.[tj]s$/, '.d.ts'))
}

function packageOf(specifier: string): string {
  return specifier
    .split('/')
    .slice(0, specifier.startsWith('@') ? 2 : 1)
    .join('/')
}

function keyOf({ file, name }: Declaration): string {
  return `${file}#${name}`
}
