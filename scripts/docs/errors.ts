import type { DescEnumValue } from '@bufbuild/protobuf'
import { ErrorReasonSchema } from '../../gen/server/countersign/v1/error_reason_pb.ts'
import { type ErrorReason, reasons } from '../../src/shared/errors.ts'
import type { ProtoComments } from '../proto-comments.ts'
import { markdownOf } from './comments.ts'
import { code } from './markdown.ts'

const page = 'errors.md'

/** Titles of the groups of reasons. A group has twenty numbers. */
const groups = [
  'General',
  'Origin and application name',
  'Nonces and proofs',
  'Sessions',
  'Orders',
  'Wallets of a user',
]

/** The parts of docs/errors.md. */
export function errorsParts(comments: ProtoComments): Readonly<Record<string, string>> {
  const values = ErrorReasonSchema.values.filter(({ number }) => number !== 0)
  const sections = groups.map((title, index) => {
    const own = values.filter(({ number }) => Math.floor(number / 20) === index)
    return `### ${title}\n\n${own.map((value) => reasonSection(value, comments)).join('\n')}`
  })
  return { reasons: sections.join('\n') }
}

function reasonSection(value: DescEnumValue, comments: ProtoComments): string {
  const reason = reasonOf(value)
  const lines = comments.of(value).split('\n')
  const codesAt = lines.findIndex((line) => line.startsWith('Connect: '))
  const about = lines.slice(0, codesAt).join(' ')
  const metadata = lines.slice(codesAt + 2).map((line) => `- ${metadataLine(line)}\n`)
  return [
    `#### ${reason}\n`,
    `${answerOf(reason)} ${markdownOf(about, page, reason)}\n`,
    ...(metadata.length === 0 ? [] : [metadata.join('')]),
  ].join('\n')
}

/** How REST and the other protocols answer, and whether a retry can succeed. */
function answerOf(reason: ErrorReason): string {
  const { http, code: codeName } = reasons[reason]
  return `${http}, ${code(codeName)}${isRetried(reason) ? ', worth a retry' : ''}.`
}

/** A line about a key, or several: their names, a colon and what they mean. */
function metadataLine(line: string): string {
  const [, keys = '', meaning = ''] = /^\s*([a-z_, ]+): (.*)$/.exec(line) ?? []
  if (keys === '') throw new Error(`A line about metadata in error_reason.proto does not begin with a key: ${line}`)
  return `${keys.split(', ').map(code).join(', ')}: ${markdownOf(meaning, page)}`
}

function reasonOf({ name }: DescEnumValue): ErrorReason {
  return name.replace('ERROR_REASON_', '') as ErrorReason
}

/** Whether the client retries by itself a call whose retry gets the same answer. */
function isRetried(reason: ErrorReason): boolean {
  const { retry } = reasons[reason]
  return retry === 'same call' || retry === 'after a time'
}
