import { once } from 'node:events'
import http from 'node:http'
import http2 from 'node:http2'
import { connect } from 'node:net'
import type { Readable } from 'node:stream'
import { expect, test } from 'vitest'
import { refusals } from '../../src/http/refusals.ts'
import { streamBody } from '../../src/wire/body.ts'
import { listen } from '../support/listening.ts'

/** Reads the body of a request once its sender has gone, as a call does that has waited for something else before. */
async function readLate(body: Readable): Promise<Buffer> {
  await once(body, 'close').catch(() => {})
  return await streamBody({ stream: body, headers: {}, refusals }).read(1000)
}

const refusal = { reason: 'INVALID_REQUEST', message: 'The request ended before its body did' }

test('a body whose sender has gone before it is read is refused, over HTTP/1.1', async () => {
  const read = Promise.withResolvers<Buffer>()
  const server = http.createServer((request) => {
    read.resolve(readLate(request))
    socket.resetAndDestroy()
  })
  const socket = connect(await listen(server), '127.0.0.1')
  socket.write('POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 100\r\n\r\nhalf')
  await expect(read.promise).rejects.toMatchObject(refusal)
})

test('a body whose sender has gone before it is read is refused, over HTTP/2', async () => {
  const read = Promise.withResolvers<Buffer>()
  const server = http2.createServer().on('stream', (arrived) => {
    read.resolve(readLate(arrived))
    stream.close(http2.constants.NGHTTP2_CANCEL)
  })
  const session = http2.connect(`http://127.0.0.1:${await listen(server)}`).on('error', () => {})
  const stream = session.request({ ':method': 'POST' }).on('error', () => {})
  stream.write('half')
  await expect(read.promise).rejects.toMatchObject(refusal)
  session.destroy()
})
