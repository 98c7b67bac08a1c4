import type { JsonValue } from '@bufbuild/protobuf'
import { expect, test } from 'vitest'
import { sendRaw } from '../support/raw-http.ts'
import { http2Sender } from '../support/raw-http2.ts'
import { readRpcAnswer } from '../support/rpc-answer.ts'
import { startService } from '../support/service.ts'
import { type Fields, fieldsOf } from '../wire/differential/compare.ts'
import { inParallel, makeFixture } from '../wire/differential/fixture.ts'
import { callsOverEveryProtocol, methodOf, type Plan, requestOf } from '../wire/differential/requests.ts'

test('a call has one answer over every protocol, codec and compression', async () => {
  const { url } = await startService()
  const fixture = await makeFixture(url)
  const overHttp2 = http2Sender(url)
  const ask = async (plan: Plan): Promise<Fields> => {
    const request = requestOf(plan, fixture)
    const isGrpc = /^application\/grpc(\+|$)/.test(plan.contentType ?? '')
    const answer = isGrpc ? await overHttp2(request) : await sendRaw(fixture.port, request)
    const { answered, code, message, reason, metadata, details, messages } = fieldsOf(
      answer && readRpcAnswer(answer, methodOf(plan)),
    )
    return present({ answered, code, message, reason, metadata, details, messages })
  }
  const calls = callsOverEveryProtocol()
  const reasons = new Set<JsonValue | undefined>()
  let detailTypes = ''
  await inParallel(calls, async (plans) => {
    const [first, ...others] = await Promise.all(plans.map(ask))
    reasons.add(first?.reason)
    detailTypes += JSON.stringify(first?.details)
    others.forEach((other, index) => {
      const { rpc, message, spelling, credentials, contentType, encoding } = plans[index + 1] as Plan
      expect({ rpc, message, spelling, credentials, contentType, encoding, answer: other }).toEqual({
        ...{ rpc, message, spelling, credentials, contentType, encoding },
        answer: first,
      })
    })
  })
  expect(detailTypes).toContain('buf.validate.Violations')
  // If the calls did not get far, they would all agree.
  expect([...reasons]).toEqual(
    expect.arrayContaining([
      undefined,
      'INVALID_REQUEST',
      'NONCE_NOT_FOUND',
      'ORDER_TOKEN_INVALID',
      'SESSION_REQUIRED',
    ]),
  )
})

function present(fields: Readonly<Record<string, JsonValue | undefined>>): Fields {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)) as Fields
}
