const bold = process.stdout.isTTY
  ? (text: string): string => `\u001b[1m${text}\u001b[0m`
  : (text: string): string => text

/** Announces what the next steps show. */
export function title(text: string): void {
  process.stdout.write(`\n${bold(text)}\n`)
}

/** A step that is done. */
export function done(text: string): void {
  process.stdout.write(`  ✓ ${text}\n`)
}

/** Shows a text of several lines. */
export function indented(text: string): void {
  process.stdout.write(`${text.replaceAll(/^/gm, '    ')}\n`)
}

/** The beginning of a long value: enough to tell two apart. */
export function short(value: string): string {
  return `${value.slice(0, 16)}…`
}
