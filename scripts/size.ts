/**
 * Prints the size of the source: `npm run size`. With `-- --way`, also how many files of src run for one VerifySignIn
 * over gRPC on Redis; `--files` names them. That needs redis-server.
 */
import { globSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { filesOnTheWay } from './way.ts'

const root = fileURLToPath(new URL('..', import.meta.url))
const read = (path: string): string => readFileSync(`${root}${path}`, 'utf8')
const filesOf = (pattern: string): string[] => globSync(pattern, { cwd: root }).sort()

/** A comment, or a token that can contain what looks like one; at the last alternative, any other character. */
const tokens = {
  css: /(?<comment>\/\*.*?\*\/)|"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*'|./sy,
  ts: /(?<comment>\/\/[^\n]*|\/\*.*?\*\/)|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'|[\w$]+|\s+|./sy,
}
/** The rest of a template literal, up to its end or the beginning of the next substitution. */
const templateText = /(?:\\.|\$(?!\{)|[^\\`$])*(?:`|\$\{)/sy
const regularExpression = /\/(?:\\.|\[(?:\\.|[^\]\\\n])*\]|[^/\\[\n])+\/\w*/y
/** The last token before a slash that divides: the end of a value. Keywords that a value follows are not one. */
const endsValue = /^(?!(?:return|typeof|case|in|of|do|else|void|delete|throw|await|yield|new)$)[\w$)\]}"'`]/

/** A source text without its comments. Line breaks inside them stay out, too. */
export function withoutComments(text: string, language: 'ts' | 'css'): string {
  let code = ''
  let last = ''
  /** Braces that are open in each substitution of a template literal, innermost last. */
  const open: number[] = []
  for (let at = 0; at < text.length; ) {
    const next = (pattern: RegExp): RegExpExecArray | null => {
      pattern.lastIndex = at
      return pattern.exec(text)
    }
    const endsSubstitution = text[at] === '}' && open.at(-1) === 0
    let match = next(tokens[language]) as RegExpExecArray
    if (language === 'ts' && match[0] === '/' && !endsValue.test(last)) match = next(regularExpression) ?? match
    let token = match[0]
    at += token.length
    if (language === 'ts' && (token === '`' || endsSubstitution)) {
      if (endsSubstitution) open.pop()
      token += next(templateText)?.[0] ?? ''
      at += token.length - 1
      if (token.endsWith('${')) open.push(0)
    } else if (open.length > 0) {
      open[open.length - 1]! += token === '{' ? 1 : token === '}' ? -1 : 0
    }
    if (match.groups?.comment !== undefined) continue
    code += token
    if (token.trim() !== '') last = token.endsWith('${') ? '{' : token
  }
  return code
}

/** Lines with code: neither blank nor of comments alone. */
export function linesOfCode(text: string, language: 'ts' | 'css'): number {
  return withoutComments(text, language)
    .split('\n')
    .filter((line) => line.trim() !== '').length
}

/** Files whose lines count. Texts of pages do not: they grow with each language, and are no code. */
export function countedFiles(): readonly string[] {
  return filesOf('src/**/*.{ts,css}').filter((path) => !path.startsWith('src/shared/texts/'))
}

function printSize(): void {
  const files = countedFiles()
  const sources = files.map((path) => ({ path, text: read(path) }))
  const lines = sources.map(({ path, text }) => linesOfCode(text, path.endsWith('.css') ? 'css' : 'ts'))
  const sum = lines.reduce((total, count) => total + count, 0)
  const median = lines.toSorted((a, b) => a - b)[Math.floor(lines.length / 2)]
  const long = sources.flatMap(({ text }) => text.split('\n')).filter((line) => line.length > 120).length
  const client = files.filter((path) => /^src\/browser\/(client|wallets|element)\//.test(path)).length
  console.log(
    `src: ${sum} lines of code in ${files.length} files (client: ${client}), median ${median}, without texts of pages`,
  )
  console.log(`src: ${long} lines over 120 characters`)
  const prose = [...sources.map(({ text }) => text), ...['README.md', ...filesOf('docs/**/*.md')].map(read)].join('\n')
  const counts = ['whoever', 'whatever', 'nobody', 'somebody', 'anybody'].map(
    (word) => `${word} ${prose.match(new RegExp(`\\b${word}\\b`, 'gi'))?.length ?? 0}`,
  )
  console.log(`src, docs, README: ${counts.join(', ')}`)
}

if (import.meta.main) {
  printSize()
  if (process.argv.includes('--way') || process.argv.includes('--files')) {
    const way = await filesOnTheWay()
    console.log(`way of VerifySignIn over gRPC on Redis: ${way.length} files of src`)
    if (process.argv.includes('--files')) console.log(way.join('\n'))
  }
}
