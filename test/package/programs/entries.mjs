// Runs in a project that has the package installed: imports all that it exports, and prints what came of it, by specifier.
import { readdirSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'

const manifestFile = createRequire(import.meta.url).resolve('countersign/package.json')
const { exports } = createRequire(import.meta.url)(manifestFile)

/** The specifiers of one subpath, of which a pattern has as many as there are files. */
function specifiersOf(subpath, target) {
  const specifier = subpath.replace('.', 'countersign')
  if (!target.includes('*')) return [specifier]
  const [start, end] = target.split('*')
  const names = readdirSync(join(dirname(manifestFile), start)).filter((name) => name.endsWith(end))
  return names.map((name) => specifier.replace('*', name.slice(0, name.length - end.length)))
}

const outcomes = {}
for (const [subpath, target] of Object.entries(exports)) {
  if (typeof target === 'string') continue
  for (const specifier of specifiersOf(subpath, target.default)) {
    outcomes[specifier] = await import(specifier).then(
      (module) => (Object.keys(module).length > 0 ? 'imported' : 'empty'),
      (error) => error.message,
    )
  }
}
console.log(JSON.stringify(outcomes))
