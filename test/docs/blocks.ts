/** A code block of a Markdown page. */
export interface CodeBlock {
  readonly language: string
  /** Without the indentation of the list item that it is in. */
  readonly text: string
}

/** The code blocks of a page, in its order. */
export function blocksOf(page: string): CodeBlock[] {
  const found = page.matchAll(/^( *)```(\w+)\n([\s\S]*?)^\1```$/gm)
  return [...found].map(([, indent = '', language = '', text = '']) => ({
    language,
    text: text.replaceAll(new RegExp(`^${indent}`, 'gm'), ''),
  }))
}
