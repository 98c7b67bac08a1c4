import { readFile } from 'node:fs/promises'

const index = new URL('../../docs/README.md', import.meta.url)
const readme = new URL('../../README.md', import.meta.url)

/**
 * llms.txt: what the project is, by the README's first paragraph, and each document with the line that docs/README.md has
 * for it. Its form is that of https://llmstxt.org. Throws if the index has a line that is none of these.
 */
export async function llmsText(): Promise<string> {
  const [title = '', about = ''] = (await readFile(readme, 'utf8')).split('\n\n')
  const [, , ...parts] = (await readFile(index, 'utf8')).trimEnd().split('\n\n')
  return `${[title, `> ${about.replaceAll('\n', ' ')}`, ...parts.map(fromRoot)].join('\n\n')}\n`
}

/** A heading, or a list whose links lead from docs/ on, with links from the top level. */
function fromRoot(part: string): string {
  if (part.startsWith('## ')) return part
  return part
    .split('\n')
    .map((line) => {
      const [, path = '', purpose = ''] = /^- \[[^\]]+\]\(([^)]+)\): (.+)$/.exec(line) ?? []
      if (path === '') throw new Error(`docs/README.md has a line that is no link with a purpose: ${line}`)
      const file = path.startsWith('../') ? path.slice('../'.length) : `docs/${path}`
      return `- [${file}](${file}): ${purpose}`
    })
    .join('\n')
}
