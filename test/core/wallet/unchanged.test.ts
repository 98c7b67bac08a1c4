import { createHash, createPrivateKey, sign } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { rest } from '../../support/rest.ts'
import { startService } from '../../support/service.ts'

/**
 * What services with the adapters nimiq and ed25519 have stored and signed before there were others, written down then.
 * A user whose id changes has lost the account, and a text that changes is one that older clients and proofs do not
 * know.
 */
const secretKey = Buffer.alloc(32, 7)
const pkcs8 = Buffer.concat([Buffer.from('302e020100300506032b657004220420', 'hex'), secretKey])
const privateKey = createPrivateKey({ key: pkcs8, format: 'der', type: 'pkcs8' })
const publicKeyHex = 'ea4a6c63e29c520abef5507b132ec5f9954776aebebe7b92421eea691446d22c'
const address = 'NQ27 HLNH Q9G1 4Y3L 8VMJ E4TC BQUC 00VN DE49'

const wallets = {
  nimiq: {
    userId: 'usr_AE-__5ARx8sxbLpiEfTcrR',
    signedBytes(message: string): Buffer {
      const body = Buffer.from(message)
      return createHash('sha256').update(`\x16Nimiq Signed Message:\n${body.length}`).update(body).digest()
    },
  },
  ed25519: { userId: 'usr_XVXMZVdOc7nrNXtrgrCQVn', signedBytes: (message: string): Buffer => Buffer.from(message) },
}

describe.each(Object.entries(wallets))('a wallet of %s', (adapterId, { userId, signedBytes }) => {
  const signatureOf = (message: string): string => sign(null, signedBytes(message), privateKey).toString('hex')

  test('signs in with the text, the user id and the session that it always had', async () => {
    const { url } = await startService({ appName: 'Example' })
    const { json: challenge } = await rest(url, '/wallet/nonce', {})
    const { nonceId, nonce, message } = challenge
    const issuedAt = new Date(challenge.issuedAt).toISOString()
    const expiresAt = new Date(challenge.expiresAt).toISOString()
    expect(message).toBe(
      `Example requests authentication\nAction: auth.login\nOrigin: ${url}\nChallenge ID: login\nNonce: ${nonce}\nIssued At: ${issuedAt}\nExpires At: ${expiresAt}`,
    )
    const proof = { nonceId, publicKeyHex, signatureHex: signatureOf(message) }
    const { json } = await rest(url, '/wallet/verify', proof)
    const { id, ...session } = json.session
    expect(id).toMatch(/^[A-Za-z0-9_-]{22,}$/)
    expect(session).toEqual({
      userId,
      publicKeyHex,
      address,
      adapterId,
      ip: '127.0.0.1',
      userAgent: 'node',
      createdAt: expect.any(Number),
      expiresAt: expect.any(Number),
      current: true,
    })
  })

  test('approves an order with the text and the artifact that it always had', async () => {
    const { url } = await startService({ appName: 'Example' })
    const details = { kind: 'sign', displayTitle: 'Title', payloadHash: `sha256:${'A'.repeat(43)}` }
    const { json: started } = await rest(url, '/cross-device/start', details)
    const { orderId, claimToken, desktopToken, confirmationCode } = started
    const { json: claimed } = await rest(url, '/cross-device/claim', { orderId, claimToken })
    const { challengeToken } = claimed
    const headers = { authorization: `Bearer ${challengeToken}` }
    const { json } = await rest(url, `/cross-device/challenge?orderId=${orderId}`, undefined, headers)
    const { message, nonce, challengeId } = json
    const issuedAt = new Date(json.issuedAt).toISOString()
    const expiresAt = new Date(json.expiresAt).toISOString()
    expect(message).toBe(
      `Example requests approval\nAction: order.approve\nOrigin: ${url}\nChallenge ID: ${challengeId}\nNonce: ${nonce}\nIssued At: ${issuedAt}\nExpires At: ${expiresAt}\nOrder ID: ${orderId}\nKind: sign\nCode: ${confirmationCode}\nPayload Hash: ${details.payloadHash}\nTitle: Title`,
    )
    const signatureHex = signatureOf(message)
    await rest(url, '/cross-device/approve', { orderId, challengeToken, proof: { publicKeyHex, signatureHex } })
    const finalized = await fetch(`${url}/api/auth/cross-device/finalize`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ orderId, desktopToken }),
    })
    const { payloadHash } = details
    expect(await finalized.text()).toContain(
      `"proofArtifact":${JSON.stringify({ publicKeyHex, signatureHex, address, message, payloadHash, adapterId })}`,
    )
  })

  test('signs the same texts if the page names it, and beside other adapters', async () => {
    const { url } = await startService({ appName: 'Example', adapters: ['ethereum', 'nimiq', 'ed25519'] })
    const wallet = { adapterId, address, chainId: '1' }
    const { json } = await rest(url, '/wallet/nonce', wallet)
    expect(json.message).toMatch(/^Example requests authentication\nAction: auth\.login\n.*\nExpires At: [^\n]*$/s)
    const signatureHex = signatureOf(json.message)
    const proof = { nonceId: json.nonceId, ...wallet, publicKeyHex, signatureHex }
    expect((await rest(url, '/wallet/verify', proof)).json.session.userId).toBe(userId)

    const { json: started } = await rest(url, '/cross-device/start', { kind: 'sign' })
    const { orderId, claimToken } = started
    const { json: claimed } = await rest(url, '/cross-device/claim', { orderId, claimToken })
    const headers = { authorization: `Bearer ${claimed.challengeToken}` }
    const messages = await Promise.all(
      [{}, wallet].map(async (named) => {
        const query = new URLSearchParams({ orderId, ...named })
        return (await rest(url, `/cross-device/challenge?${query}`, undefined, headers)).json.message
      }),
    )
    expect(messages[0]).toMatch(/\nCode: \d\d$/)
    expect(messages[1]).toBe(messages[0])
  })
})
