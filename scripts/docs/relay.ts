import { type Attacker, attackers, type ColumnId, columns } from '../../test/relay/table.ts'
import { markdownTable } from './markdown.ts'

/** The parts of docs/cross-device-security.md. */
export function relayParts(): Readonly<Record<string, string>> {
  return { 'the relay table': relayTable(), 'the reasons': relayReasons() }
}

const columnIds = Object.keys(columns) as ColumnId[]

/** Every reason once, in the order in which the table has them. */
const reasons = [
  ...new Set(
    Object.values<Attacker>(attackers).flatMap(({ cells }) => columnIds.map((column) => cells[column].because)),
  ),
]

function relayTable(): string {
  const rows = Object.values<Attacker>(attackers).map(({ name, does, cells }) => [
    `**${name}.** ${does}`,
    ...columnIds.map((column) => {
      const { verdict, because } = cells[column]
      return verdict.replace('not stopped', '**not stopped**') + superscript(reasons.indexOf(because) + 1)
    }),
  ])
  return markdownTable(['attacker', ...Object.values(columns)], rows)
}

const superscript = (number: number): string => [...`${number}`].map((digit) => '⁰¹²³⁴⁵⁶⁷⁸⁹'[Number(digit)]).join('')

/** Why the attackers end as they do. */
function relayReasons(): string {
  const because = reasons.map((reason, index) => `${index + 1}. ${reason[0]?.toUpperCase()}${reason.slice(1)}.\n`)
  return because.join('')
}
