import type { Option } from '../../src/service/config/option-types.ts'
import { sections } from '../../src/service/config/options.ts'
import { allOptions, fileVariable, type NamedOption } from '../../src/service/config.ts'
import { code, markdownTable } from './markdown.ts'

/** The parts of docs/settings.md. */
export function settingsParts(): Readonly<Record<string, string>> {
  const parts = Object.entries(sections).map(([title, section]) => {
    const options = allOptions.filter(({ group, key }) => Object.hasOwn(section, group ?? key))
    return `## ${title}\n\n${settingsTable(options)}`
  })
  return { settings: parts.join('\n') }
}

function settingsTable(options: readonly NamedOption[]): string {
  const rows = options.map(({ name, option }) => {
    const bounds = boundsOf(option)
    return [names(name, option), defaultOf(option) + (bounds === '' ? '' : ` (${bounds})`), option.about]
  })
  return markdownTable(['variable, and option', 'default (other values)', 'what it is'], rows)
}

/** The variables of an option, and the option, in lines of one cell. */
function names(name: string, { variable, fromFile }: Option): string {
  if (variable === undefined) return `${code(name)}, in code only`
  const variables = fromFile === true ? [variable, fileVariable(variable)] : [variable]
  return [...variables, name].map(code).join('<br>')
}

/** The default of an option, in Markdown. */
export function defaultOf({ default: value, otherwise }: Option): string {
  if (otherwise !== undefined) return otherwise
  if (typeof value === 'boolean') return code(value ? 'on' : 'off')
  return code(Array.isArray(value) ? value.join(',') : String(value))
}

/** Bounds of an option, or its values in addition to the default, in Markdown; empty if its kind lists none. */
export function boundsOf({ kind: { range, choices }, default: value, notBelow }: Option): string {
  if (range !== undefined) {
    return [`${notBelow ?? range.min} to ${range.max}`, ...(choices ?? []).map(code)].join(', ')
  }
  if (typeof value === 'boolean') return code(value ? 'off' : 'on')
  return (choices ?? [])
    .filter((choice) => choice !== value)
    .map(code)
    .join(', ')
}
