import { connect } from 'node:http2'
import { expect, test } from 'vitest'
import { startMeasured } from '../../support/metrics.ts'
import { callsWithSecrets, from, isPublic, recorder } from '../../support/recorder.ts'
import { makeWallet } from '../../support/wallet.ts'

/** Sends a request whose every part can be chosen, over HTTP/2. */
async function raw(url: string, headers: Record<string, string>): Promise<void> {
  const session = connect(url)
  session.on('error', () => {})
  const stream = session.request({ ':path': '/', ...headers })
  stream.on('error', () => {})
  stream.resume().end()
  await new Promise<void>((resolve) => stream.once('close', resolve))
  session.destroy()
}

test('nothing that was sent or answered stands in the metrics, wherever callers put it', async () => {
  const secret = 'the secret of this test and of nothing else'
  const service = await startMeasured({ secret, rateLimit: true, confirmationCode: 'return', trustProxy: 1 })
  const { url } = service
  const calls = recorder(url)
  const { seen, call } = calls
  const { nonce, proof, token, session } = await callsWithSecrets(calls, makeWallet(), from)

  const odd = [token, session.id, nonce.nonce, nonce.nonceId, proof.signatureHex, secret.replaceAll(' ', '-')]
  for (const text of odd) {
    await fetch(`${url}/countersign.v1.SignInService/${text}`, { method: 'POST', body: '{}' })
    await fetch(`${url}/${text}/IssueNonce`, { method: 'POST', body: '{}' })
    await call(`/${text}`)
    await call(`/session?token=${text}`)
    await call(
      '/wallet/nonce',
      { appName: text },
      { origin: `https://${text.slice(0, 30).replaceAll(/\W/g, '')}.example` },
    )
    await call('/wallet/verify', { ...proof, nonceId: text, adapterId: text })
    await raw(url, { ':method': text.replaceAll(/\W/g, ''), ':path': `/${text}` })
    await raw(url, {
      ':method': 'POST',
      ':path': `/countersign.v1.OrderService/${text}`,
      'content-type': 'application/grpc',
    })
    await raw(url, {
      ':method': 'POST',
      ':path': '/countersign.v1.SignInService/IssueNonce',
      'content-type': `application/${text}`,
    })
    await raw(url, { ':method': 'GET', ':path': '/readyz', 'user-agent': text, cookie: text })
    await fetch(`${service.metricsUrl}/${text}`)
  }

  const wanted = [...seen, ...odd, secret].filter((text) => text !== '' && !isPublic(text))
  expect(wanted.length).toBeGreaterThan(60)
  const { text } = await service.scrape()
  // Without the numbers at the ends, in which any six digits can be a code by chance.
  const names = text.replaceAll(/^([^#].*) \S+$/gm, '$1')
  expect(text).toContain('countersign_sign_ins_total{adapter="nimiq",way="order"} 1')
  expect(wanted.filter((one) => names.includes(one))).toEqual([])
  expect(names).not.toMatch(/cs[a-z]_[A-Za-z0-9_-]{10}|203\.0\.113|127\.0\.0\.1|localhost|[0-9a-f]{32}/)
})
