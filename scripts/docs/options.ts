import { isGroup, type Option } from '../../src/service/config/option-types.ts'
import { sections } from '../../src/service/config/options.ts'
import { fileVariable } from '../../src/service/config.ts'
import { boundsOf, defaultOf } from './settings.ts'

const head = `// Written by npm run docs from src/service/config/options.ts.
import type { AuditEventHook } from '../src/base/audit.ts'
import type { Logger } from '../src/base/log.ts'
import type { Tracing } from '../src/base/tracing.ts'
import type { NonceStore } from '../src/core/sign-in/nonce.ts'
import type { OwnClaims, ResolveLogin } from '../src/core/users/application.ts'
import type { Host } from '../src/core/users/host.ts'
import type { WalletAdapter } from '../src/core/wallet/wallet.ts'
import type { Limits } from '../src/limits/limits.ts'
import type { Store } from '../src/store/store.ts'
`

const about = `Everything that can be set, in code or, except for the options marked "code only", by an environment variable. A value
that does not fit stops the start with a \`TypeError\` of one line that says what to change.`

/** gen/options.ts: the types of the options and their comments. */
export function optionTypes(): string {
  const entries = Object.values(sections).flatMap((section) => Object.entries(section))
  const groups = entries.flatMap(([, entry]) => {
    if (!isGroup(entry)) return []
    const members = Object.entries<Option>(entry.options).filter(([, { ofGroup }]) => ofGroup !== 'only')
    return [
      typeText(
        entry.type,
        entry.about,
        members.map(([key, option]) => member(key, commentOf(option), option.kind.type)),
      ),
    ]
  })
  const all = entries.map(([name, entry]) => {
    if (!isGroup(entry)) return member(name, commentOf(entry), entry.kind.type)
    const members = Object.values<Option>(entry.options)
    const only = members.find(({ ofGroup }) => ofGroup === 'only')
    const boolean = members.some(({ ofGroup }) => ofGroup !== undefined) ? 'boolean | ' : ''
    return member(name, only === undefined ? entry.about : `${entry.about} ${commentOf(only)}`, boolean + entry.type)
  })
  return [head, ...groups, typeText('CountersignOptions', about, all)].join('\n')
}

function typeText(name: string, about: string, members: readonly string[]): string {
  return `${comment(about, '')}export interface ${name} {\n${members.join('')}}\n`
}

function member(name: string, text: string, type: string): string {
  return `${comment(text, '  ')}  ${name}?: ${type}\n`
}

/** What an option is, its bounds, default and variable. */
function commentOf(option: Option): string {
  const { variable, fromFile } = option
  const bounds = boundsOf(option)
  const variables =
    variable === undefined
      ? 'Code only.'
      : `Variable: ${variable}${fromFile === true ? `, or ${fileVariable(variable)}` : ''}.`
  return [option.about, bounds === '' ? '' : `Values: ${bounds}.`, `Default: ${defaultOf(option)}.`, variables]
    .filter((part) => part !== '')
    .join(' ')
}

/** A doc comment of at most 120 columns, without links. */
function comment(text: string, indent: string): string {
  const lines = [`${indent}/**`]
  let line = `${indent} *`
  for (const word of text.replaceAll(/\[([^\]]+)\]\([^)]*\)/g, '$1').split(/\s+/)) {
    if (line.length + word.length >= 120) {
      lines.push(line)
      line = `${indent} *`
    }
    line += ` ${word}`
  }
  return `${[...lines, line, `${indent} */`].join('\n')}\n`
}
