import http from 'node:http'
import http2 from 'node:http2'
import type { Readable } from 'node:stream'
import { setTimeout as sleep } from 'node:timers/promises'
import { expect, onTestFinished, test } from 'vitest'
import { runCaddy } from '../support/caddy.ts'
import { hasPart } from '../support/optional.ts'
import { freePort } from '../support/redis-server.ts'
import { rest } from '../support/rest.ts'
import { startService } from '../support/service.ts'

/** A stream of an order's events, which is open for as long as nothing happens. */
interface Watch {
  readonly seen: { text: string; closed: boolean }
  leave(): void
}

function watching(answer: Readable, leave: () => void): Watch {
  const seen = { text: '', closed: false }
  answer.on('error', () => {})
  answer.on('data', (chunk: Buffer) => {
    seen.text += chunk
  })
  answer.on('close', () => {
    seen.closed = true
  })
  return { seen, leave }
}

/** All but one of 202 watches leave at once; the one that stays sees what happens next. */
async function expectOneStays(url: string, watch: (path: string, authorization: string) => Promise<Watch>) {
  const { orderId, desktopToken, claimToken } = (await rest(url, '/cross-device/start', { kind: 'login' })).json
  const open = () => watch(`/api/auth/cross-device/events?orderId=${orderId}`, `Bearer ${desktopToken}`)
  const [stays, ...left] = await Promise.all(Array.from({ length: 202 }, open))
  await expect.poll(() => [stays!, ...left].filter(({ seen }) => seen.text.includes('"sequence":1,')).length).toBe(202)
  for (const { leave } of left) leave()
  await sleep(500)
  await rest(url, '/cross-device/claim', { orderId, claimToken })
  await expect.poll(() => stays!.seen).toMatchObject({ text: expect.stringContaining('"sequence":2,'), closed: false })
}

test('of 202 watches on one HTTP/2 connection, 201 can leave at once, and the last one goes on', async () => {
  const { url } = await startService()
  const session = http2.connect(url)
  session.on('error', () => {})
  onTestFinished(() => session.destroy())
  await expectOneStays(url, async (path, authorization) => {
    const stream = session.request({ ':path': path, authorization })
    return watching(stream, () => stream.close(http2.constants.NGHTTP2_CANCEL))
  })
})

test.skipIf(!hasPart('caddy'))('through Caddy, which sends 202 clients over one connection, too', async () => {
  const port = await freePort()
  const publicUrl = `http://127.0.0.1:${port}`
  const { url } = await startService({ publicUrl, trustProxy: 1 })
  const upstream = `reverse_proxy h2c://127.0.0.1:${new URL(url).port} {\n flush_interval -1\n }`
  await runCaddy(port, `${publicUrl} {\n ${upstream}\n}`)
  await expectOneStays(publicUrl, async (path, authorization) => {
    const request = http.get(`${publicUrl}${path}`, { agent: false, headers: { authorization } })
    request.on('error', () => {})
    // Caddy ends once its clients have left.
    onTestFinished(() => void request.destroy())
    const answer = await new Promise<http.IncomingMessage>((resolve) => request.once('response', resolve))
    return watching(answer, () => request.destroy())
  })
})
