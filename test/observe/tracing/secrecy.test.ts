import { createServer, type IncomingHttpHeaders } from 'node:http'
import { expect, test } from 'vitest'
import { CountersignError } from '../../../src/index.ts'
import type { CountersignOptions } from '../../../src/service/config.ts'
import { rpcKey, startChain } from '../../support/evm.ts'
import { listening } from '../../support/listening.ts'
import { keptLog } from '../../support/log-lines.ts'
import { callsWithSecrets, from, isPublic, recorder } from '../../support/recorder.ts'
import { startService } from '../../support/service.ts'
import { callSpans, endedSpans, registerSdk, textOf } from '../../support/tracing.ts'
import { makeWallet, proofOf } from '../../support/wallet.ts'

registerSdk()

const secret = 'the secret of this test and of nothing else'
const webhookSecret = `whsec_${Buffer.from('a secret of the tests, and of no use to anybody').toString('base64')}`
const traceId = '4bf92f3577b34da6a3ce929d0e0e4736'

/** What a caller that names a trace sends, with texts of its own beside it. */
const traced = {
  traceparent: `00-${traceId}-00f067aa0ba902b7-01`,
  tracestate: 'vendor=state-of-the-caller',
  baggage: 'user=baggage-of-the-caller',
}

/** A receiver of webhooks that keeps the headers of its requests. */
async function startReceiver(): Promise<{ readonly webhookUrl: string; readonly received: IncomingHttpHeaders[] }> {
  const received: IncomingHttpHeaders[] = []
  const server = createServer((request, response) => {
    received.push(request.headers)
    request.resume()
    response.end()
  })
  return { webhookUrl: `${await listening(server)}/secret-path-of-the-receiver`, received }
}

/** A service with an RPC and a webhook, and what it sent to both. */
async function startAll(options: CountersignOptions) {
  const chain = await startChain()
  const asked: IncomingHttpHeaders[] = []
  chain.trouble((_, { req }) => {
    asked.push(req.headers)
    return false
  })
  const { webhookUrl, received } = await startReceiver()
  const adapters = ['nimiq', 'ed25519', 'ethereum']
  const { url } = await startService({
    ...{ secret, webhook: { url: webhookUrl, secret: webhookSecret }, adapters, evmRpc: { 1: chain.url } },
    ...options,
  })
  // Those of the check at the start belong to no call.
  expect(asked.map(({ traceparent }) => traceparent)).toEqual([undefined])
  asked.length = 0
  return { url, asked, received }
}

/** A signature of a contract wallet that does not hold, for which the chain is asked. */
const contractWallet = {
  ...{ adapterId: 'ethereum', chainId: '1', publicKeyHex: '' },
  ...{ address: `0x${'12'.repeat(20)}`, signatureHex: 'ab'.repeat(70) },
}

/** Spans by the id by which others know them. */
function spanOf({ traceparent }: IncomingHttpHeaders) {
  const [, trace, id] = String(traceparent).split('-')
  return endedSpans().find((span) => span.spanContext().traceId === trace && span.spanContext().spanId === id)
}

test('requests to an RPC and to a webhook name the span that they are made in, and nothing that a caller wrote', async () => {
  const { url, asked, received } = await startAll({ tracing: 'on' })
  const { call } = recorder(url)
  const { adapterId, address, chainId } = contractWallet
  const { nonceId } = (await call('/wallet/nonce', { adapterId, address, chainId }, traced)).json
  expect((await call('/wallet/verify', { nonceId, ...contractWallet }, traced)).json.code).toBe('SIGNATURE_INVALID')
  const proof = proofOf(makeWallet(), (await call('/wallet/nonce', {}, traced)).json)
  expect((await call('/wallet/verify', proof, traced)).status).toBe(200)
  await expect.poll(() => received.length).toBe(2)
  await expect.poll(() => received.every((headers) => spanOf(headers) !== undefined)).toBe(true)
  await expect.poll(() => callSpans().length).toBe(4)

  expect(asked.length).toBeGreaterThan(0)
  for (const headers of asked) {
    const span = spanOf(headers)
    expect(span?.spanContext().traceId).toBe(traceId)
    expect(span?.attributes).toMatchObject({
      'rpc.system.name': 'jsonrpc',
      'rpc.method': span?.name,
      'countersign.chain.id': '1',
    })
    expect(span?.name).toMatch(/^eth_/)
  }
  const verification = endedSpans().find(({ name }) => name === 'verify ethereum')
  expect(asked.map((headers) => spanOf(headers)?.parentSpanContext?.spanId)).toEqual(
    asked.map(() => verification?.spanContext().spanId),
  )
  // A delivery is nobody's call: it can be made by another instance, days later.
  for (const headers of received) {
    expect(spanOf(headers)).toMatchObject({ name: 'deliver audit event', parentSpanContext: undefined })
    expect(spanOf(headers)?.spanContext().traceId).not.toBe(traceId)
  }
  for (const headers of [...asked, ...received]) {
    expect(JSON.stringify(headers)).not.toMatch(/of-the-caller|tracestate|baggage/)
  }
})

test('what was sent, answered or thrown stands in no span, wherever callers put it', async () => {
  const { logger } = keptLog()
  let thrown: Error | undefined
  const { url } = await startAll({
    ...{ tracing: 'on', logger, confirmationCode: 'return', trustProxy: 1, rateLimit: true },
    resolveLogin(identity) {
      if (thrown !== undefined) throw thrown
      return { id: `user-${identity.subject}` }
    },
  })
  const calls = recorder(url)
  const { seen, call } = calls
  const wallet = makeWallet()
  const headers = { ...from, traceparent: traced.traceparent }
  const { nonce, proof, token, session } = await callsWithSecrets(calls, wallet, headers)
  const { nonceId } = (await call('/wallet/nonce', {})).json
  await call('/wallet/verify', { nonceId, ...contractWallet })

  const odd = [token, session.id, nonce.nonce, nonce.nonceId, proof.signatureHex, secret, rpcKey]
  for (const text of odd) {
    await call(
      '/wallet/nonce',
      { appName: text },
      { origin: `https://${text.replaceAll(/\W/g, '').slice(0, 30)}.example` },
    )
    await call('/wallet/verify', { ...proof, nonceId: text, adapterId: text })
    await call(`/cross-device/challenge?orderId=${encodeURIComponent(text)}&challengeToken=${encodeURIComponent(text)}`)
    for (thrown of [
      new Error(text),
      new CountersignError('LOGIN_REFUSED', text),
      new CountersignError(text as 'INTERNAL', text),
    ]) {
      const again = (await call('/wallet/nonce', {})).json
      await call('/wallet/verify', proofOf(wallet, again))
    }
  }

  const wanted = [...seen, ...odd, webhookSecret, 'secret-path', 'evil', url].filter(
    (text) => text !== '' && !isPublic(text),
  )
  expect(wanted.length).toBeGreaterThan(60)
  await expect.poll(() => endedSpans().some(({ name }) => name === 'deliver audit event')).toBe(true)
  const text = endedSpans().map(textOf).join('\n')
  const names = endedSpans().map(({ name }) => name)
  const steps = [
    'verify nimiq',
    'verify ethereum',
    'eth_getCode',
    'resolveLogin',
    'compareAndSet',
    'deliver audit event',
  ]
  expect(names).toEqual(expect.arrayContaining(steps))
  const reasons = endedSpans().map(({ attributes }) => attributes['error.type'])
  const expected = ['HOST_UNAVAILABLE', 'LOGIN_REFUSED', 'NONCE_NOT_FOUND', 'ORIGIN_NOT_TRUSTED', '_OTHER']
  expect(reasons).toEqual(expect.arrayContaining(expected))
  expect(wanted.filter((one) => text.includes(one))).toEqual([])
  expect(text).not.toMatch(
    /cs[a-z]_[A-Za-z0-9_-]{10}|203\.0\.113|127\.0\.0\.1|localhost|a browser|[0-9a-f]{32}|https?:/,
  )
})
