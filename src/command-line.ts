import { parseArgs } from 'node:util'

/** What the command's arguments ask for. */
export interface CommandLine {
  /** Show the help and do nothing else. */
  readonly help: boolean
  /** Serve the local network. */
  readonly lan: boolean
}

/** Reads the command's arguments. Throws a `TypeError` of one line that names the first one that it does not know. */
export function readCommandLine(args: readonly string[]): CommandLine {
  const asked = { help: false, lan: false }
  const options = { help: { type: 'boolean', short: 'h' }, lan: { type: 'boolean' } } as const
  // Not strict: what it would say of an unknown argument advises on things that this command does not have.
  const { tokens } = parseArgs({ args: [...args], options, strict: false, tokens: true })
  for (const token of tokens) {
    if (token.kind === 'option-terminator') continue
    const name = token.kind === 'option' ? token.name : token.value
    const isKnown = token.kind === 'option' ? Object.hasOwn(asked, name) && token.value === undefined : name === 'help'
    if (!isKnown)
      throw new TypeError(`unknown argument ${JSON.stringify(args[token.index])}; --help shows those there are`)
    asked[name as keyof CommandLine] = true
  }
  return asked
}
