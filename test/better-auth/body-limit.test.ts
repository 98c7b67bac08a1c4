import { once } from 'node:events'
import { request } from 'node:http'
import { describe, expect, test } from 'vitest'
import { computerPaths, desktopOrderPaths, phoneOrderPaths, signInPaths } from '../../src/shared/rest-paths.ts'
import { ownOrigin } from './calls.ts'
import { makeAuth, startAuth } from './support.ts'

const maxBytes = 64 * 1024

/** A body of valid JSON with this many bytes. */
function bodyOf(bytes: number): string {
  const start = '{"appName":"'
  return `${start}${'x'.repeat(bytes - start.length - 2)}"}`
}

/** A body of blanks that comes in pieces, without a length. */
function piecesOf(bytes: number): ReadableStream<Uint8Array> {
  let left = bytes
  return new ReadableStream({
    pull(controller) {
      const piece = new Uint8Array(Math.min(16_384, left)).fill(0x20)
      left -= piece.length
      controller.enqueue(piece)
      if (left === 0) controller.close()
    },
  })
}

describe('the body of a request', () => {
  const headers = { origin: ownOrigin, 'content-type': 'application/json' }
  const paths = [
    ...Object.values(signInPaths).map((path) => `/wallet${path}`),
    '/wallet/link',
    ...Object.values(desktopOrderPaths).filter((path) => path !== desktopOrderPaths.events),
    ...Object.values(phoneOrderPaths).filter(
      (path) => path !== phoneOrderPaths.challenge && path !== phoneOrderPaths.preview,
    ),
    computerPaths.forget,
  ]

  test.each(paths)('of %s has at most 64 KiB, whether it states its length or not', async (path) => {
    const auth = await makeAuth({ auth: { rateLimit: { enabled: false } } })
    const send = async (body: string | ReadableStream<Uint8Array>) => {
      const init = { method: 'POST', headers, body, duplex: 'half' } as RequestInit
      const response = await auth.handler(new Request(`${ownOrigin}/api/auth${path}`, init))
      return { status: response.status, json: (await response.json()) as { code: string } }
    }
    expect(await send(bodyOf(maxBytes + 1))).toMatchObject({ status: 413, json: { code: 'REQUEST_TOO_LARGE' } })
    expect(await send(piecesOf(1_000_000))).toMatchObject({ status: 413, json: { code: 'REQUEST_TOO_LARGE' } })
    const read = await send(bodyOf(maxBytes))
    expect(read.status).toBeLessThan(500)
    expect(read.json.code).not.toBe('REQUEST_TOO_LARGE')
  })

  test('arrives whole if it comes in pieces', async () => {
    const auth = await makeAuth()
    const text = new Blob([JSON.stringify({ appName: 'App' })]).stream()
    const init = { method: 'POST', headers, body: text, duplex: 'half' } as RequestInit
    const response = await auth.handler(new Request(`${ownOrigin}/api/auth/wallet/nonce`, init))
    expect(await response.json()).toMatchObject({ origin: ownOrigin, message: expect.stringMatching(/^App requests/) })
  })

  test('is not limited for the endpoints of others', async () => {
    const auth = await makeAuth()
    const init = { method: 'POST', headers, body: JSON.stringify({ email: 'x'.repeat(maxBytes * 2) }) }
    expect((await auth.handler(new Request(`${ownOrigin}/api/auth/sign-in/email`, init))).status).not.toBe(413)
  })

  test('the body of a request that goes on for ever is answered over HTTP, too', async () => {
    const { url } = await startAuth()
    const sent = request(`${url}/api/auth/wallet/verify`, {
      method: 'POST',
      headers: { origin: url, 'content-type': 'application/json' },
    })
    sent.on('error', () => {})
    const timer = setInterval(() => sent.write(' '.repeat(16_384)), 5)
    const [response] = await once(sent, 'response')
    clearInterval(timer)
    expect(response.statusCode).toBe(413)
    sent.destroy()
  })
})
