import { type Attacker, attackers, type ColumnId, columns } from '../../test/relay/table.ts'
import { markdownTable } from './markdown.ts'

/** The parts of docs/cross-device-security.md. */
export function relayParts(): Readonly<Record<string, string>> {
  return { 'the relay table': relayTable(), 'the reasons': relayReasons() }
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
