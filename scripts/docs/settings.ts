import { nameInCode, type Option, optionRows, type Row } from '../../src/service/config/options.ts'
import { fileVariable } from '../../src/service/config.ts'
import { code, markdownTable } from './markdown.ts'

interface Group {
  readonly title: string
  readonly options: readonly Option[]
}

/** Settings by subject, in the order of docs/settings.md. Each belongs to one group. */
const groups: readonly Group[] = [
  { title: 'Start', options: ['port', 'host', 'appName', 'secret'] },
  {
    title: 'Addresses and origins',
    options: [
      'publicUrl',
      'tlsCert',
      'tlsKey',
      'trustedOrigins',
      'enforceOrigin',
      'trustProxy',
      'basePath',
      'endpointPrefix',
    ],
  },
  {
    title: 'Store',
    options: ['store', 'keyPrefix', 'redisTlsCa', 'redisTlsCert', 'redisTlsKey', 'redisTlsServerName'],
  },
  {
    title: 'Orders',
    options: [
      'orderTtlSeconds',
      'confirmationCode',
      'knownComputers',
      'proximity',
      'orderStartKeys',
      'claimUrlTemplate',
    ],
  },
  {
    title: 'Sessions',
    options: [
      'sessionTtlSeconds',
      'sessionAbsoluteTtlSeconds',
      'addressTtlSeconds',
      'accessTokenAudiences',
      'accessTokenTtlSeconds',
      'accessTokenAlgorithm',
      'syncAddressToUser',
      'syncPublicKeyToUser',
    ],
  },
  { title: 'OpenID Connect', options: ['oidcClients', 'oidcEmail', 'oidcClaims', 'oidcPeople'] },
  { title: 'Wallets', options: ['adapters', 'evmRpc', 'verifier', 'nonceTtlSeconds'] },
  { title: 'Pages', options: ['pages', 'demoWallet', 'logoUrl', 'accentColor', 'textsFile'] },
  {
    title: 'Limits',
    options: [
      'rateLimit',
      'rateLimits',
      'maxConnections',
      'maxConnectionsPerAddress',
      'maxRequests',
      'maxPendingBodies',
      'maxStreams',
      'maxNonces',
      'maxOrders',
    ],
  },
  {
    title: 'Operations',
    options: [
      'logFormat',
      'workers',
      'metricsPort',
      'metricsHost',
      'tracing',
      'drainSeconds',
      'webhookUrl',
      'webhookSecret',
    ],
  },
  {
    title: 'Code only',
    options: ['nonceStore', 'sessionHost', 'resolveLogin', 'onAuditEvent', 'metrics', 'logger'],
  },
]

/** The parts of docs/settings.md. Throws if a setting is in no group or in two. */
export function settingsParts(): Readonly<Record<string, string>> {
  for (const [option] of optionRows) {
    const count = groups.filter(({ options }) => options.includes(option)).length
    if (count !== 1)
      throw new Error(`The setting ${option} is in ${count} groups: correct that in scripts/docs/settings.ts`)
  }
  const sections = groups.map(({ title, options }) => `## ${title}\n\n${settingsTable(options)}`)
  return { settings: sections.join('\n') }
}

function settingsTable(options: readonly Option[]): string {
  const byOption = new Map(optionRows)
  const rows = options.map((option) => {
    const row = byOption.get(option) as Row
    return [
      variables(row),
      code(nameInCode(option)),
      [defaultOf(row), bounds(row)].filter((part) => part !== '').join(' '),
      row.about,
    ]
  })
  return markdownTable(['variable', 'option', 'default (other values)', 'what it is'], rows)
}

function variables({ variable, fromFile }: Row): string {
  if (variable === undefined) return 'code only'
  return fromFile === true ? `${code(variable)}, ${code(fileVariable(variable))}` : code(variable)
}

function defaultOf({ default: value, defaultText }: Row): string {
  if (defaultText !== undefined) return defaultText
  if (typeof value === 'boolean') return code(value ? 'on' : 'off')
  return code(Array.isArray(value) ? value.join(',') : String(value))
}

function bounds({ kind: { range, choices }, default: value, notBelow }: Row): string {
  if (range !== undefined)
    return `(${[`${notBelow ?? range.min} to ${range.max}`, ...(choices ?? []).map(code)].join(', ')})`
  if (typeof value === 'boolean') return `(${code(value ? 'off' : 'on')})`
  if (choices === undefined) return ''
  return `(${choices
    .filter((choice) => choice !== value)
    .map(code)
    .join(', ')})`
}
