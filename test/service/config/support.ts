import { expect } from 'vitest'
import { allOptions, type CountersignOptions, givenFor, type Settings } from '../../../src/service/config.ts'

/** Options with one value, by the option's name in code. */
export function optionsWith(name: string, value: unknown): CountersignOptions {
  const [group = '', key] = name.split('.')
  return { [group]: key === undefined ? value : { [key]: value } }
}

/** The resolved value of an option, by its name in code. */
export function settingOf(settings: Settings, name: string): unknown {
  const named = allOptions.find((option) => option.name === name)
  if (named === undefined) throw new Error(`there is no option ${name}`)
  return givenFor(settings as CountersignOptions, named)
}

/** The message of a refusal. */
export function refusal(attempt: () => unknown): string {
  try {
    attempt()
  } catch (error) {
    expect(error).toBeInstanceOf(TypeError)
    return (error as Error).message
  }
  throw new Error('nothing was refused')
}
