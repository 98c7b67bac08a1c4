import { readFileSync } from 'node:fs'
import { Code } from '@connectrpc/connect'
import { codeFromString, errorToJson } from '@connectrpc/connect/protocol-connect'
import { expect, test } from 'vitest'
import { ErrorReasonSchema } from '../../gen/server/countersign/v1/error_reason_pb.ts'
import { ErrorInfoSchema, RetryInfoSchema } from '../../gen/server/google/rpc/error_details_pb.ts'
import { CountersignClientError, isPassing } from '../../src/browser/client/errors.ts'
import { errorText } from '../../src/browser/element/texts.ts'
import { endingOf } from '../../src/browser/pages/endings.ts'
import { toConnectError } from '../../src/rpc/errors.ts'
import { CountersignError, type ErrorReason, reasons, refused } from '../../src/shared/errors.ts'
import { english } from '../../src/shared/texts/english.ts'
import { englishTexts } from '../../src/shared/texts/english-element.ts'

const names = Object.keys(reasons) as ErrorReason[]

/** The comment of each reason in the protos. */
const comments = new Map<string, string>()
{
  const text = readFileSync(new URL('../../proto/countersign/v1/error_reason.proto', import.meta.url), 'utf8')
  for (const [, comment, name] of text.matchAll(/((?: {2}\/\/.*\n)+) {2}ERROR_REASON_(\w+) =/g)) {
    comments.set(name as string, comment as string)
  }
}

test('the reasons are those of the protocol definitions', () => {
  const fromProto = ErrorReasonSchema.values
    .filter(({ number }) => number !== 0)
    .map(({ name }) => name.replace('ERROR_REASON_', ''))
  expect(new Set(names)).toEqual(new Set(fromProto))
})

test.each(Object.entries(reasons))(
  '%s: the comment in the protos states its code, status and metadata',
  (name, row) => {
    expect(codeFromString(row.code)).toBeDefined()
    expect(row.http).toBeGreaterThanOrEqual(400)
    expect(comments.get(name)).toContain(`Connect: ${row.code}. HTTP: ${row.http}.`)
    const keys = /Metadata: (.*)\./.exec(comments.get(name) ?? '')?.[1]?.split(', ') ?? []
    expect(row.metadata.toSorted()).toEqual(keys.toSorted())
  },
)

test.each(names)('%s: its text has only what is in its metadata', (name) => {
  const metadata = Object.fromEntries(reasons[name].metadata.map((key) => [key, `the ${key}`]))
  const { message, reason } = refused(name, { metadata })
  expect(reason).toBe(name)
  const used = [...reasons[name].text.matchAll(/\{(\w+)\}/g)].map(([, key]) => String(key))
  expect(reasons[name].metadata).toEqual(expect.arrayContaining(used))
  for (const key of used) expect(message).toContain(`the ${key}`)
  expect(message).not.toMatch(/[{}]|\.$/)
})

test.each(Object.entries(reasons))('%s: its class, status and level agree', (_name, row) => {
  expect(row.http >= 500).toBe(['busy', 'outage', 'fault'].includes(row.class))
  expect(row.level !== 'info').toBe(row.http >= 500)
  expect(row.level === 'error').toBe(row.metadata.includes('reference'))
})

test.each(names)('%s: the client retries it if its row says so', (name) => {
  const { retry } = reasons[name]
  const failure = new CountersignClientError(name, '', { retryAfterMs: 1 })
  expect(isPassing(failure)).toBe(retry === 'same call' || retry === 'after a time')
})

test.each(names)('%s: users see a text of its own where its row says so', (name) => {
  const { shown } = reasons[name]
  expect(Object.hasOwn(english, `notice.${name}`), 'notice').toBe(shown.includes('notice'))
  expect(endingOf(name) !== undefined, 'ending').toBe(shown.includes('ending'))
  const said = errorText(new CountersignClientError(name, ''), englishTexts)
  expect(said !== englishTexts.failed, 'element').toBe(shown.includes('element'))
})

test.each(names)('%s travels as ErrorInfo', (name) => {
  const failure = new CountersignError(name, 'text', { retryAfterMs: 1500 })
  const error = toConnectError(failure)
  expect(error.code).toBe(codeFromString(failure.code))
  expect(error.findDetails(ErrorInfoSchema)).toMatchObject([{ reason: name, domain: 'countersign' }])
  expect(error.findDetails(RetryInfoSchema)).toMatchObject([{ retryDelay: { seconds: 1n, nanos: 500_000_000 } }])
  expect(error.metadata.get('retry-after')).toBe('2')
})

test('text with half of a surrogate pair travels too, as U+FFFD', () => {
  const error = toConnectError(
    new CountersignError('LOGIN_REFUSED', 'no \ud83d', { metadata: { application_message: 'no \ud83d' } }),
  )
  expect(error.rawMessage).toBe('no \ufffd')
  expect(error.findDetails(ErrorInfoSchema)[0]?.metadata).toEqual({ application_message: 'no \ufffd' })
})

test('an unforeseen error becomes INTERNAL and shows nothing of its cause', () => {
  const error = toConnectError(new Error('password=hunter2'))
  expect(error.code).toBe(Code.Internal)
  expect(error.rawMessage).toMatch(/^The server failed; its log has the cause under [0-9a-f-]{36}$/)
  expect(JSON.stringify(errorToJson(error, undefined))).not.toContain('hunter2')
})
