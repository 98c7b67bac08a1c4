/** An object type whose fields that may be `undefined` are optional instead. */
export type Given<T> = {
  [Name in keyof T as undefined extends T[Name] ? never : Name]: T[Name]
} & {
  [Name in keyof T as undefined extends T[Name] ? Name : never]?: Exclude<T[Name], undefined>
}

/** The fields of an object that are not `undefined`: one that is would hide a default, or be written as a value. */
export function given<T extends object>(fields: T): Given<T> {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)) as Given<T>
}

/** Of an object, the named fields that are not `undefined`. */
export function pick<T extends object, Name extends keyof T>(from: T, names: readonly Name[]): Pick<T, Name> {
  const named = names.filter((name) => from[name] !== undefined).map((name) => [name, from[name]])
  return Object.fromEntries(named) as Pick<T, Name>
}
