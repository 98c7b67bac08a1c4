/**
 * Writes what comes from the code and the protos into the documents, docs/texts.en.json, gen/options.ts, and llms.txt.
 * Each part is between the comments `<!-- {name}: written by npm run docs -->` and `<!-- end of {name} -->`; all else in
 * the documents stays as it is.
 */
import { readFile, writeFile } from 'node:fs/promises'
import { english } from '../src/shared/texts/english.ts'
import { errorsParts } from './docs/errors.ts'
import { llmsText } from './docs/llms.ts'
import { withParts } from './docs/markdown.ts'
import { optionTypes } from './docs/options.ts'
import { protocolParts } from './docs/protocol.ts'
import { relayParts } from './docs/relay.ts'
import { settingsParts } from './docs/settings.ts'
import { type ProtoComments, readProtoComments } from './proto-comments.ts'

/**
 * The documents that have such parts, by their paths in the repository, with what makes the parts: each by its name.
 */
const partsOf: Readonly<Record<string, (comments: ProtoComments) => Readonly<Record<string, string>>>> = {
  'docs/cross-device-security.md': relayParts,
  'docs/errors.md': errorsParts,
  'docs/protocol.md': protocolParts,
  'docs/settings.md': settingsParts,
}

/** Files that are written as a whole, from the code or from the index of the documents. */
const wholeFiles: Readonly<Record<string, () => string | Promise<string>>> = {
  'docs/texts.en.json': () => `${JSON.stringify(english, null, 2)}\n`,
  'gen/options.ts': optionTypes,
  'llms.txt': llmsText,
}

/** A document as it is, and as it should be. */
export interface WrittenDocument {
  readonly path: string
  readonly before: string
  readonly after: string
}

/**
 * Reads the documents, and writes their parts anew without storing them. Rejects if a document has no place for a part.
 */
export async function writtenDocuments(): Promise<WrittenDocument[]> {
  const comments = await readProtoComments()
  const writers = [
    ...Object.entries(partsOf).map(
      ([path, parts]) => [path, (before: string) => withParts(path, before, parts(comments))] as const,
    ),
    ...Object.entries(wholeFiles).map(([path, write]) => [path, write] as const),
  ]
  return await Promise.all(
    writers.map(async ([path, write]) => {
      const before = await readFile(fileOf(path), 'utf8')
      return { path, before, after: await write(before) }
    }),
  )
}

function fileOf(path: string): URL {
  return new URL(`../${path}`, import.meta.url)
}

if (import.meta.main) {
  for (const { path, after } of await writtenDocuments()) await writeFile(fileOf(path), after)
}
