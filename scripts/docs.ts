/**
 * Writes what comes from the code into the documents: the tables of settings, REST endpoints and errors in README.md, and the
 * relay table with its reasons in docs/cross-device-security.md. Each stands between the comments
 * `<!-- {name}: written by npm run docs -->` and `<!-- end of {name} -->`; all else in the documents stays as it is.
 */
import { readFile, writeFile } from 'node:fs/promises'
import { OrderService } from '../gen/server/countersign/v1/order_service_pb.ts'
import { SessionService } from '../gen/server/countersign/v1/session_service_pb.ts'
import { SignInService } from '../gen/server/countersign/v1/sign_in_service_pb.ts'
import { WalletService } from '../gen/server/countersign/v1/wallet_service_pb.ts'
import { optionRows, type Row } from '../src/config/options.ts'
import { resolveSettings } from '../src/config.ts'
import { reasons } from '../src/errors.ts'
import { restEndpoints } from '../src/http/rest/endpoints.ts'
import { type Attacker, attackers, type ColumnId, columns } from '../test/relay/table.ts'

const readmeFile = new URL('../README.md', import.meta.url)
const crossDeviceFile = new URL('../docs/cross-device-security.md', import.meta.url)
const services = [SignInService, WalletService, OrderService, SessionService]

/** A REST endpoint and the RPC that it is another name of. */
export interface NamedEndpoint {
  readonly httpMethod: string
  /** Path under the base path. */
  readonly path: string
  readonly service: string
  readonly rpc: string
}

/** All REST endpoints with the default endpoint prefix. */
export function namedEndpoints(): NamedEndpoint[] {
  const { endpointPrefix } = resolveSettings()
  return restEndpoints({ basePath: '', endpointPrefix }).map(({ httpMethod, path, rpc }) => ({
    httpMethod,
    path,
    service: rpc.parent.name,
    rpc: rpc.name,
  }))
}

/** A README's text with its tables replaced by those of the code. Throws if a table's place is missing. */
export function withTables(readme: string): string {
  return withParts('README.md', readme, { settings: settingsTable(), 'REST calls': restTable(), errors: errorTable() })
}

/** The text of docs/cross-device-security.md with the relay table and its reasons replaced by those of the code. Throws likewise. */
export function withRelayTable(document: string): string {
  return withParts('docs/cross-device-security.md', document, {
    'the relay table': relayTable(),
    'the reasons': relayReasons(),
  })
}

function withParts(file: string, document: string, parts: Readonly<Record<string, string>>): string {
  return Object.entries(parts).reduce((text, [name, part]) => {
    const begin = `<!-- ${name}: written by npm run docs -->\n\n`
    const end = `\n<!-- end of ${name} -->\n`
    const from = text.indexOf(begin)
    const to = text.indexOf(end, from)
    if (from < 0 || to < 0) throw new Error(`${file} has no place for the table of ${name}: ${begin}${end}`)
    return `${text.slice(0, from)}${begin}${part}${text.slice(to)}`
  }, document)
}

function settingsTable(): string {
  const rows = optionRows.map(([option, row]) => [
    row.variable === undefined ? 'code only' : code(row.variable),
    code(option),
    [defaultOf(row), bounds(row)].filter((part) => part !== '').join(' '),
    row.about,
  ])
  return markdownTable(['variable', 'option', 'default (other values)', 'what it is'], rows)
}

function defaultOf({ default: value, defaultText }: Row): string {
  if (defaultText !== undefined) return defaultText
  if (typeof value === 'boolean') return code(value ? 'on' : 'off')
  return code(Array.isArray(value) ? value.join(',') : String(value))
}

function bounds({ kind: { range, choices }, default: value, notBelow }: Row): string {
  if (range !== undefined) return `(${notBelow ?? range.min} to ${range.max})`
  if (typeof value === 'boolean') return `(${code(value ? 'off' : 'on')})`
  if (choices === undefined) return ''
  return `(${choices
    .filter((choice) => choice !== value)
    .map(code)
    .join(', ')})`
}

function restTable(): string {
  const endpoints = namedEndpoints()
  const rows = services.flatMap(({ name }) =>
    endpoints
      .filter(({ service }) => service === name)
      .map(({ httpMethod, path, service, rpc }) => [code(`${httpMethod} ${path}`), code(`${service}.${rpc}`)]),
  )
  const others = services.flatMap((service) =>
    service.methods
      .filter(({ name }) => !endpoints.some(({ service: of, rpc }) => of === service.name && rpc === name))
      .map(({ name }) => code(`${service.name}.${name}`)),
  )
  return markdownTable(['REST', 'RPC'], others.length === 0 ? rows : [...rows, ['only as RPCs', others.join(', ')]])
}

function errorTable(): string {
  const rows = Object.entries(reasons).map(([reason, mapping]) => [
    code(reason),
    String(mapping.httpStatus),
    code(mapping.code),
  ])
  return markdownTable(['reason', 'HTTP', 'Connect, gRPC'], rows)
}

const columnIds = Object.keys(columns) as ColumnId[]

function relayTable(): string {
  const rows = Object.values<Attacker>(attackers).map(({ name, cells }) => [
    name,
    ...columnIds.map((column) => cells[column].verdict.replace('not stopped', '**not stopped**')),
  ])
  return markdownTable(['attacker', ...Object.values(columns)], rows)
}

/** What each attacker does, and why they end as they do; settings with the same reason share a line. */
function relayReasons(): string {
  return Object.values<Attacker>(attackers)
    .map(({ name, does, cells }) => {
      const alike = Map.groupBy(columnIds, (column) => `${cells[column].verdict}, because ${cells[column].because}`)
      const lines = [...alike].map(([end, of]) => `  - ${of.map((column) => columns[column]).join('; ')}: ${end}.\n`)
      return `- **${name}.** ${does}\n${lines.join('')}`
    })
    .join('')
}

function markdownTable(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const line = (cells: readonly string[]): string =>
    `| ${cells.map((cell) => cell.replaceAll('|', '\\|')).join(' | ')} |\n`
  return `${line(head)}|${'---|'.repeat(head.length)}\n${rows.map(line).join('')}`
}

function code(text: string): string {
  return `\`${text}\``
}

if (import.meta.main) {
  const readme = await readFile(readmeFile, 'utf8')
  await writeFile(readmeFile, withTables(readme))
  const document = await readFile(crossDeviceFile, 'utf8')
  await writeFile(crossDeviceFile, withRelayTable(document))
}
