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
  try {
    // Drops the byte order mark that some editors put first.
    const text = new TextDecoder().decode(await readFile(file))
    check(text.length <= maxBytes, 'is larger than 16 MiB')
    return JSON.parse(text)
  } catch (cause) {
    if (cause instanceof TypeError) throw cause
    const { code } = cause as NodeJS.ErrnoException
    return check(false, code === undefined ? 'is not JSON' : `cannot be read: ${code}`)
  }
}

export function isObject(value: unknown): value is Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** Whether a value is an object that has no other names than these. */
export function hasOnly(value: unknown, names: readonly string[]): value is Fields {
  return isObject(value) && Object.keys(value).every((name) => names.includes(name))
}
