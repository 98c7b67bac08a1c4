import { readFileSync } from 'node:fs'

/** The package's version. package.json is two folders up from src/base and three from dist/src/base. */
export const version: string = readVersion(['../../package.json', '../../../package.json'])

function readVersion(candidates: readonly string[]): string {
  for (const candidate of candidates) {
    try {
      const text = readFileSync(new URL(candidate, import.meta.url), 'utf8')
      const { name, version } = JSON.parse(text) as { name?: string; version?: string }
      if (name === 'countersign' && version !== undefined) return version
    } catch {
      // Not there: try the next.
    }
  }
  return 'unknown'
}
