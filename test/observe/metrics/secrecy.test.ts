import { connect } from 'node:http2'
import { expect, test } from 'vitest'
import { startMeasured } from '../../support/metrics.ts'
import { isPublic, recorder } from '../../support/recorder.ts'
import { makeWallet, proofOf } from '../../support/wallet.ts'

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
  const { seen, call } = recorder(url)
  const from = { 'x-forwarded-for': '203.0.113.77', 'user-agent': 'a browser of the test' }
  const wallet = makeWallet()
  for (const text of [wallet.address, wallet.address.replaceAll(' ', ''), wallet.publicKeyHex]) seen.add(text)

  const nonce = (await call('/wallet/nonce', {}, from)).json
  const proof = proofOf(wallet, nonce)
  const { token, session } = (await call('/wallet/verify', proof, from)).json
  await call('/wallet/verify', proof, from)
  await call('/session', undefined, { authorization: `Bearer ${token}` })
  for (const kind of ['login', 'sign']) {
    const order = (await call('/cross-device/start', { kind, displayTitle: 'A title of the test' }, from)).json
    const { orderId, claimToken, desktopToken } = order
    const { challengeToken } = (await call('/cross-device/claim', { orderId, claimToken, claimKey: 'k'.repeat(43) }))
      .json
    const bearer = { authorization: `Bearer ${challengeToken}` }
    const { message } = (await call(`/cross-device/challenge?orderId=${orderId}`, undefined, bearer)).json
    const { publicKeyHex } = wallet
    const signed = { publicKeyHex, signatureHex: wallet.sign(message) }
    const approved = await call('/cross-device/approve', { orderId, challengeToken, proof: signed })
    await call('/cross-device/finalize', { orderId, desktopToken, returnCode: '000000' })
    await call('/cross-device/finalize', { orderId, desktopToken, returnCode: approved.json.returnCode })
    await call('/cross-device/finalize', { orderId, desktopToken: token })
  }

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
