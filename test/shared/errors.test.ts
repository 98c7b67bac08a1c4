import { readFileSync } from 'node:fs'
import { Code } from '@connectrpc/connect'
import { codeFromString, errorToJson } from '@connectrpc/connect/protocol-connect'
import { expect, test } from 'vitest'
import { ErrorReason, ErrorReasonSchema } from '../../gen/server/countersign/v1/error_reason_pb.ts'
import { ErrorInfoSchema, RetryInfoSchema } from '../../gen/server/google/rpc/error_details_pb.ts'
import { toConnectError } from '../../src/rpc/errors.ts'
import { CountersignError, reasons } from '../../src/shared/errors.ts'

const names = Object.keys(reasons)

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
    .filter(({ number }) => number !== ErrorReason.UNSPECIFIED)
    .map(({ name }) => name.replace('ERROR_REASON_', ''))
  expect(new Set(names)).toEqual(new Set(fromProto))
})

test.each(Object.entries(reasons))('%s: the comment in the protos states its code and status', (name, mapping) => {
  const mapped = codeFromString(mapping.code)
  expect(mapped).toBeDefined()
  expect(mapping.httpStatus).toBeGreaterThanOrEqual(400)
  // The generated code carries the comments of the protos.
  expect(comments.get(name)).toContain(`Connect: ${mapping.code}. HTTP: ${mapping.httpStatus}.`)
})

test.each(Object.keys(reasons))('%s travels as ErrorInfo', (name) => {
  const failure = new CountersignError(name as keyof typeof reasons, 'text', { retryAfterMs: 1500 })
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

test('what nobody foresaw becomes INTERNAL and shows nothing of its cause', () => {
  const error = toConnectError(new Error('password=hunter2'))
  expect(error.code).toBe(Code.Internal)
  expect(error.rawMessage).toMatch(/^The server failed; its log has the cause under [0-9a-f-]{36}$/)
  expect(JSON.stringify(errorToJson(error, undefined))).not.toContain('hunter2')
})
