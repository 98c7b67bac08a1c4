import { closeSync, openSync, readSync } from 'node:fs'

/** Most bytes of a file with a secret: what is larger is another file. */
const maxBytes = 64 * 1024

/** The variable that names a file with the value of another variable. */
export function fileVariable(variable: string): string {
  return `${variable}_FILE`
}

/**
 * The value in a file that a variable names, without the line break at its end. If it is a list, each line can have an entry, or
 * several with commas between them; empty lines do not count.
 *
 * @throws TypeError of one line, which repeats nothing of the file, if it cannot be read, is empty, or has more than 64 KiB.
 */
export function readSecretFile(variable: string, file: string, isList: boolean): string {
  const text = readText(variable, file)
  const value = isList ? entriesOf(text).join(',') : text.replace(/\r?\n$/, '')
  if (value.trim() === '')
    throw new TypeError(`${variable} must name a file with a value in it; ${shown(file)} is empty`)
  return value
}

/** The lines, without commas at their ends: they are put between them. */
function entriesOf(text: string): string[] {
  return text
    .split('\n')
    .map((line) => line.trim().replace(/\s*,$/, ''))
    .filter((line) => line !== '')
}

/** Reads in pieces, because the size of a pipe or a device is not known before. */
function readText(variable: string, file: string): string {
  const bytes = Buffer.alloc(maxBytes + 1)
  let length = 0
  try {
    const descriptor = openSync(file, 'r')
    try {
      for (let read = -1; read !== 0 && length < bytes.length; length += read) {
        read = readSync(descriptor, bytes, length, bytes.length - length, null)
      }
    } finally {
      closeSync(descriptor)
    }
  } catch (cause) {
    const code = (cause as NodeJS.ErrnoException).code
    throw new TypeError(`${variable} must name a file that can be read; ${shown(file)} cannot be: ${code}`)
  }
  if (length > maxBytes) {
    throw new TypeError(`${variable} must name a file of at most ${maxBytes} bytes; ${shown(file)} has more`)
  }
  return bytes.toString('utf8', 0, length)
}

/** What does not look like a path could be the secret itself, put into the wrong variable. */
function shown(file: string): string {
  return /^(\.{0,2}\/|[A-Za-z]:\\)/.test(file) ? file : 'what it names (not shown: it could be the secret itself)'
}
