import { readFile } from 'node:fs/promises'

/** Says what does not fit in a file, by a `TypeError` of one line. */
export type Check = (fits: boolean, what: string) => asserts fits

export type Fields = Readonly<Record<string, unknown>>

/** Largest file in bytes. */
const maxBytes = 16 * 1024 * 1024

/** The {@link Check} of a part of a file, whose errors begin with `where`. */
export function checkOf(where: string): Check {
  return (fits, what) => {
    if (!fits) throw new TypeError(where + what)
  }
}

/** The JSON of a file. */
export async function readJson(file: string, check: Check): Promise<unknown> {
  return parseJson(await readJsonText(file, check), check)
}

/** The text of a file that has JSON. */
export async function readJsonText(file: string, check: Check): Promise<string> {
  const bytes = await readFile(file).catch((cause: NodeJS.ErrnoException) => cause)
  check(bytes instanceof Uint8Array, `cannot be read: ${bytes instanceof Error ? bytes.code : ''}`)
  check(bytes.length <= maxBytes, 'is larger than 16 MiB')
  // Drops the byte order mark that some editors put first.
  return new TextDecoder().decode(bytes)
}

export function parseJson(text: string, check: Check): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return check(false, 'is not JSON')
  }
}

export function isObject(value: unknown): value is Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** Whether a value is an object that has no other names than these. */
export function hasOnly(value: unknown, names: readonly string[]): value is Fields {
  return isObject(value) && Object.keys(value).every((name) => names.includes(name))
}
