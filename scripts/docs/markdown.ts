/** A table. Vertical bars in cells are escaped. */
export function markdownTable(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const line = (cells: readonly string[]): string =>
    `| ${cells.map((cell) => cell.replaceAll('|', '\\|')).join(' | ')} |\n`
  return `${line(head)}|${'---|'.repeat(head.length)}\n${rows.map(line).join('')}`
}

/** Text as code. */
export function code(text: string): string {
  return `\`${text}\``
}

/** A link to a heading, in another page if one is named. `heading` is one word. */
export function toHeading(heading: string, page = '', text = heading): string {
  return `[${text}](${page}#${heading.toLowerCase()})`
}

/** Puts what comes from the code between the comments that mark its place. Throws if a place is missing. */
export function withParts(file: string, document: string, parts: Readonly<Record<string, string>>): string {
  return Object.entries(parts).reduce((text, [name, part]) => {
    const begin = `<!-- ${name}: written by npm run docs -->\n\n`
    const end = `\n<!-- end of ${name} -->\n`
    const from = text.indexOf(begin)
    const to = text.indexOf(end, from)
    if (from < 0 || to < 0) throw new Error(`${file} has no place for ${name}: ${begin}${end}`)
    return `${text.slice(0, from)}${begin}${part}${text.slice(to)}`
  }, document)
}
