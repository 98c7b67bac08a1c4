import { version } from '../../version.ts'
import type { Result, Status } from './check.ts'

const marks: Record<Status, string> = { ok: '✓', warning: '!', problem: '✗', skipped: '-' }

/** Width of the longest status, and of the longest name of a check. */
const statusWidth = 'problem'.length
const nameWidth = 'forwarded headers'.length

/** Whether a setup is fit: it has no problem. */
export function isFit(results: readonly Result[]): boolean {
  return results.every(({ status }) => status !== 'problem')
}

/** The report for people: a line for each result, one below it that says how to mend it, and a sum. */
export function textReport(results: readonly Result[]): string {
  const lines = results.flatMap(({ check, status, saw, fix }) => {
    const head = `${marks[status]} ${status.padEnd(statusWidth)}  ${check.padEnd(nameWidth)}  `
    return [head + clean(saw), ...(fix === undefined ? [] : [' '.repeat(head.length) + clean(fix)])]
  })
  const count = (status: Status): number => results.filter((result) => result.status === status).length
  const counts = [plural(count('problem'), 'problem'), plural(count('warning'), 'warning')]
  return `${[...lines, '', `${counts.join(', ')}, ${count('skipped')} skipped`].join('\n')}\n`
}

/** The report for machines. docs/doctor.md describes its fields. */
export function jsonReport(results: readonly Result[]): string {
  const checks = results.map(({ check, status, saw, fix }) => ({
    check,
    status,
    saw: clean(saw),
    ...(fix === undefined ? {} : { fix: clean(fix) }),
  }))
  return `${JSON.stringify({ ok: isFit(results), version, checks })}\n`
}

/** One line without control characters, and without the user and password of an address, whoever wrote it. */
function clean(text: string): string {
  return text
    .replaceAll(/[\s\p{Cc}]+/gu, ' ')
    .replaceAll(/\/\/[^\s/@"']*@/g, '//')
    .trim()
}

function plural(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? '' : 's'}`
}
