import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import { describe, expect, onTestFinished, test } from 'vitest'
import { createLogger } from '../../src/base/log.ts'
import type { AuditEvent } from '../../src/index.ts'
import type { CountersignOptions } from '../../src/service/config.ts'
import { signInClients } from '../support/clients.ts'
import { makeComputer } from '../support/computer.ts'
import { orderClients } from '../support/orders.ts'
import { type RestAnswer, rest } from '../support/rest.ts'
import { startService } from '../support/service.ts'
import { endedSpans, registerSdk, textOf } from '../support/tracing.ts'
import { makeWallet, proofOf } from '../support/wallet.ts'

registerSdk()

const secret = 'the secret of this test and of nothing else'
const webhookSecret = `whsec_${Buffer.from('a secret of the tests, and of no use to anybody').toString('base64')}`

/** Everything that a service tells anybody but its callers. */
interface Told {
  readonly url: string
  /** Each by where it is told, as text. */
  outputs(): Promise<Readonly<Record<string, string>>>
}

async function startTelling(options: CountersignOptions): Promise<Told> {
  const [log, events, delivered]: [string[], AuditEvent[], string[]] = [[], [], []]
  const receiver = createServer(async (request, response) => {
    delivered.push(JSON.stringify(request.headers), await text(request))
    response.end()
  })
  receiver.listen(0, '127.0.0.1')
  await once(receiver, 'listening')
  onTestFinished(() => {
    receiver.closeAllConnections()
    receiver.close()
  })
  const { port } = receiver.address() as AddressInfo
  const { url, service } = await startService({
    ...{ secret, webhook: { secret: webhookSecret, url: `http://127.0.0.1:${port}/` }, tracing: 'on', metrics: true },
    logger: createLogger({ write: (line) => log.push(line) }, 'debug'),
    onAuditEvent: (event) => events.push(event),
    ...options,
  })
  return {
    url,
    async outputs() {
      await expect.poll(() => delivered.length).toBeGreaterThan(2)
      return {
        log: log.join(''),
        'audit events': JSON.stringify(events),
        webhook: delivered.join(''),
        metrics: await service.metrics(),
        traces: endedSpans().map(textOf).join('\n'),
      }
    },
  }
}

/** Keeps what must not be told: what looks like a secret in whatever is sent and answered. */
class Secrets {
  readonly kept = new Set<string>([secret, webhookSecret])

  /** Keeps the secrets of an answer, and returns it. */
  of<Answer extends object>(answer: Answer): Answer {
    for (const [name, value] of Object.entries(answer)) {
      if (typeof value === 'object' && value !== null) this.of(value)
      if (typeof value === 'string' && secretFields.test(name) && !/^[A-Z_]*$/.test(value)) this.kept.add(value)
      if (name === 'message')
        for (const [, nonce = ''] of String(value).matchAll(/^Nonce: (.+)$/gm)) this.kept.add(nonce)
    }
    return answer
  }

  /** Those that stand in a text. A code counts if no digit stands beside it. */
  in(output: string): string[] {
    return [...this.kept].filter((each) =>
      /^\d{6}$/.test(each) ? new RegExp(`(?<!\\d)${each}(?!\\d)`).test(output) : output.includes(each),
    )
  }
}

const secretFields = /token|^nonce|signature|ticket|code$|claimKey|proof$|secret/i

async function expectSilence({ outputs }: Told, secrets: Secrets): Promise<void> {
  for (const [name, output] of Object.entries(await outputs())) {
    expect(output.length, name).toBeGreaterThan(500)
    expect(secrets.in(output), name).toEqual([])
    expect(output.match(/cs[a-z]_[A-Za-z0-9_-]{20,}|whsec_/), name).toBeNull()
  }
}

describe('with log, audit events, webhook, metrics and traces on, none of them has a token, nonce, code, signature or secret', () => {
  test('of sign-ins and orders over every protocol', async () => {
    const told = await startTelling({})
    const secrets = new Secrets()
    for (const [name, make] of Object.entries(signInClients)) {
      const client = make(told.url)
      const challenge = secrets.of(await client.issueNonce())
      const proof = secrets.of(proofOf(makeWallet(), challenge))
      secrets.of(await client.verify(proof))
      // The second time it is refused, and so is whatever stands at a wrong place.
      await expect(client.verify(proof), name).rejects.toThrow()
      await expect(client.verify({ ...proof, nonceId: secret, address: challenge.nonceId }), name).rejects.toThrow()
    }
    for (const [name, make] of Object.entries(orderClients)) {
      const client = make(told.url)
      for (const kind of ['login', 'sign'] as const) {
        const order = secrets.of(await client.start(kind))
        const { orderId, claimToken, desktopToken } = order
        const { challengeToken } = secrets.of(await client.claim({ orderId, claimToken }))
        const { message } = secrets.of(await client.challenge({ orderId, challengeToken }))
        const wallet = makeWallet()
        const proof = secrets.of({ publicKeyHex: wallet.publicKeyHex, signatureHex: wallet.sign(message) })
        await expect(client.approve({ orderId, challengeToken: desktopToken, proof }), name).rejects.toThrow()
        await client.approve({ orderId, challengeToken, proof })
        await expect(client.finalize({ orderId: desktopToken, desktopToken: orderId }), name).rejects.toThrow()
        secrets.of(await client.finalize(order))
      }
    }
    expect(secrets.kept.size).toBeGreaterThan(90)
    // Two digits to compare are no secret, and stand in many numbers.
    for (const each of secrets.kept) if (/^\d{2}$/.test(each)) secrets.kept.delete(each)
    await expectSilence(told, secrets)
  })

  test('of return codes, known computers, hand-overs, take-backs, links, access tokens and start keys', async () => {
    const startKey = 'start-key-of-this-test-which-is-long-enough'
    const app = { origin: 'https://app.example' }
    const told = await startTelling({
      ...{ confirmationCode: 'return', orderStartKeys: [startKey], trustedOrigins: [app.origin] },
      accessTokens: { audiences: ['https://api.example'] },
    })
    const secrets = new Secrets()
    secrets.kept.add(startKey)
    const call = async (path: string, body?: object, token?: string): Promise<RestAnswer['json']> => {
      if (body !== undefined) secrets.of(body)
      const authorization = token === undefined ? {} : { authorization: `Bearer ${token}` }
      return secrets.of((await rest(told.url, path, body, { ...app, ...authorization })).json)
    }
    const [wallet, added, computer] = [makeWallet(), makeWallet(), await makeComputer()]
    const { token } = await call('/wallet/verify', proofOf(wallet, await call('/wallet/nonce', {})))
    const { nonceId, ...proof } = proofOf(added, await call('/wallet/nonce', { purpose: 'link' }, token))
    expect(await call('/wallet/link', { nonceId, proof }, token)).toMatchObject({ wallet: { address: added.address } })
    expect(await call('/access-token', { audience: 'https://api.example' }, token)).toHaveProperty('accessToken')

    const start = { kind: 'login', computerKey: computer.key, requester: app }
    await call('/cross-device/start', start, 'a-wrong-start-key-which-is-long-enough-too')
    const { orderId, claimToken, desktopToken } = await call('/cross-device/start', start, startKey)
    const claimed = await call('/cross-device/claim', { orderId, claimToken, claimKey: 'k'.repeat(43) })
    const handOver = await call('/cross-device/hand-over', { orderId, challengeToken: claimed.challengeToken })
    const { challengeToken } = await call('/cross-device/redeem', { ticket: handOver.ticket })
    await call('/cross-device/redeem', { ticket: handOver.ticket })
    const { message } = await call(`/cross-device/challenge?orderId=${orderId}`, undefined, challengeToken)
    const signed = { publicKeyHex: wallet.publicKeyHex, signatureHex: wallet.sign(message) }
    const misplaced = { ...signed, address: challengeToken }
    await call('/cross-device/approve', { orderId, challengeToken, proof: misplaced })
    const { returnCode } = await call('/cross-device/approve', {
      ...{ orderId, challengeToken, proof: signed },
      rememberComputer: true,
    })
    const finalize = { orderId, desktopToken, computerProof: await computer.prove({ orderId, desktopToken }) }
    const wrong = String((Number(returnCode) + 1) % 1_000_000).padStart(6, '0')
    expect(await call('/cross-device/finalize', { ...finalize, returnCode: wrong })).toMatchObject({ triesLeft: 2 })
    expect(await call('/cross-device/finalize', { ...finalize, returnCode })).toHaveProperty('token')
    expect(await call('/cross-device/reject', { orderId, challengeToken })).toMatchObject({ sessionEnded: true })
    await call('/sign-out', {}, token)
    await call('/session', undefined, token)
    expect([...secrets.kept]).toEqual(expect.arrayContaining([returnCode, wrong, handOver.ticket, startKey]))
    await expectSilence(told, secrets)
  })
})
