/** What an error says, in one line. */
export function messageOf(error: unknown): string {
  const message = error instanceof Error ? error.message || error.name : String(error)
  return message.replaceAll(/\s+/g, ' ').trim()
}

/** The first letter as a capital. */
export function capitalized(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1)
}
