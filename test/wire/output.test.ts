import { once } from 'node:events'
import { createServer, IncomingMessage, ServerResponse } from 'node:http'
import { connect, createServer as createHttp2Server, type ServerHttp2Stream } from 'node:http2'
import { connect as connectTcp, type Server, Socket } from 'node:net'
import { setTimeout as pause } from 'node:timers/promises'
import { describe, expect, onTestFinished, test } from 'vitest'
import { FetchOutput } from '../../src/http/fetch.ts'
import { type Answer, type Output, ResponseOutput, StreamOutput, writeAll } from '../../src/wire/output.ts'
import { listen } from '../support/listening.ts'

const pieceBytes = 16 * 1024
const pieceCount = 4_000

/** What all pieces together may take: more than a stream and two sockets hold, and a quarter of the whole. */
const mostPieces = 1_000

/** Writes 64 MB to whoever asks; `taken` counts the pieces that were asked of the source. */
function source() {
  const progress = { taken: 0, ended: false, failed: false }
  async function* pieces(): AsyncGenerator<Uint8Array> {
    const piece = Buffer.alloc(pieceBytes, 'x')
    for (; progress.taken < pieceCount; progress.taken++) yield piece
  }
  const serve = (output: Output): void => {
    const gone = new AbortController()
    output.answering.once('close', () => gone.abort())
    writeAll(pieces(), output, { 'content-type': 'text/plain' }, gone.signal).then(
      () => {
        progress.ended = true
        output.end()
      },
      () => {
        progress.failed = true
      },
    )
  }
  return { progress, serve }
}

/** Resolves once the source has not been asked for more for a while. */
async function stalled(progress: { readonly taken: number }): Promise<number> {
  for (let before = -1; before !== progress.taken; await pause(200)) before = progress.taken
  return progress.taken
}

/** A client that has asked, and reads nothing until it is told to. */
interface Client {
  /** Reads on to the end, and resolves with the number of bytes. */
  read(): Promise<number>
  leave(): void
}

type Start = (serve: (output: Output) => void) => Promise<Client>

const overHttp1: Start = async (serve) => {
  const port = await listen(createServer((_, response) => serve(new ResponseOutput(response))))
  const socket = connectTcp(port, '127.0.0.1').pause()
  onTestFinished(() => void socket.destroy())
  socket.on('error', () => {})
  socket.write('GET / HTTP/1.0\r\n\r\n')
  return {
    async read() {
      let bytes = 0
      socket.on('data', (chunk: Buffer) => (bytes += chunk.length)).resume()
      await once(socket, 'end')
      return bytes
    },
    leave: () => socket.destroy(),
  }
}

const http2Client = (port: number): Client => {
  const session = connect(`http://127.0.0.1:${port}`)
  onTestFinished(() => session.destroy())
  session.on('error', () => {})
  const stream = session.request({ ':path': '/' }).pause()
  stream.on('error', () => {})
  return {
    async read() {
      let bytes = 0
      stream.on('data', (chunk: Buffer) => (bytes += chunk.length)).resume()
      await once(stream, 'end')
      return bytes
    },
    leave: () => session.destroy(),
  }
}

const overHttp2: Start = async (serve) =>
  http2Client(await listen(createHttp2Server((_, response) => serve(new ResponseOutput(response)))))

const overBareStream: Start = async (serve) => {
  const server = createHttp2Server()
  server.on('stream', (stream: ServerHttp2Stream) => serve(new StreamOutput(stream)))
  return http2Client(await listen(server))
}

const asResponse: Start = async (serve) => {
  const output = new FetchOutput(new Request('http://localhost'))
  serve(output)
  const { body } = await output.response
  const reader = (body as ReadableStream<Uint8Array>).getReader()
  return {
    async read() {
      let bytes = 0
      for (let piece = await reader.read(); !piece.done; piece = await reader.read()) bytes += piece.value.length
      return bytes
    },
    leave: () => void reader.cancel(),
  }
}

describe.each([
  ['a response of HTTP/1.1', overHttp1],
  ['a response of HTTP/2', overHttp2],
  ['a bare stream of HTTP/2', overBareStream],
  ['a Response of the Fetch standard', asResponse],
])('%s', (_, start) => {
  test('takes no more from its source than a reader that does not read leaves room for', async () => {
    const { progress, serve } = source()
    const client = await start(serve)
    await expect.poll(() => progress.taken).toBeGreaterThan(0)
    expect(await stalled(progress)).toBeLessThan(mostPieces)
    expect(progress.ended).toBe(false)
    expect(await client.read()).toBeGreaterThanOrEqual(pieceCount * pieceBytes)
    expect(progress.ended).toBe(true)
  })

  test('asks for nothing more once a reader that did not read has left', async () => {
    const { progress, serve } = source()
    const client = await start(serve)
    await expect.poll(() => progress.taken).toBeGreaterThan(0)
    await stalled(progress)
    client.leave()
    await expect.poll(() => progress.failed, { timeout: 10_000 }).toBe(true)
    expect(progress.taken).toBeLessThan(mostPieces)
  })
})

describe('how long a connection is kept', () => {
  const answer = { status: 200, headers: {}, body: 'x' }
  const keptBy = async (server: Server, headers = {}): Promise<string | null> => {
    const response = await fetch(`http://127.0.0.1:${await listen(server)}/`, { headers })
    await response.text()
    return response.headers.get('keep-alive')
  }

  test('is told with an answer of HTTP/1.1', async () => {
    const server = createServer({ keepAliveTimeout: 0 }, (_, response) => new ResponseOutput(response, 65).send(answer))
    expect(await keptBy(server)).toBe('timeout=65')
  })

  test('is not told if the connection ends with the answer, even if that is decided late', async () => {
    const server = createServer({ keepAliveTimeout: 0 }, (_, response) => {
      const output = new ResponseOutput(response, 65)
      response.setHeader('connection', 'close')
      output.send(answer)
    })
    expect(await keptBy(server)).toBeNull()
  })

  test('is not told over HTTP/2, which has no such header', async () => {
    const server = createHttp2Server()
    server.on('request', (_, response) => new ResponseOutput(response, 65).send(answer))
    const session = connect(`http://127.0.0.1:${await listen(server)}`)
    onTestFinished(() => session.destroy())
    const [headers] = await once(session.request(), 'response')
    expect([headers[':status'], headers['keep-alive']]).toEqual([200, undefined])
  })
})

test('answers that have a head in common have the headers that were set for each', async () => {
  const head = { 'content-type': 'application/json', 'cache-control': 'no-store' }
  const before = [{ vary: 'Origin', 'access-control-allow-origin': 'https://app.example' }, { vary: 'Origin' }] as const
  let asked = 0
  const server = createServer((_, response) => {
    const output = new ResponseOutput(response, 65)
    output.setHeaders(before[asked++ % 2]!)
    output.send({ status: 200, head, body: '{}' })
  })
  const url = `http://127.0.0.1:${await listen(server)}/`
  const seen: unknown[] = []
  for (let turn = 0; turn < 4; turn++) seen.push((await fetch(url)).headers.get('access-control-allow-origin'))
  expect(seen).toEqual(['https://app.example', null, 'https://app.example', null])
})

test.each([
  ['set before', { a: 'b\r\nc: d' }, {}],
  ['of the answer', {}, { 'set-auth-token': 'a\r\nb: c' }],
])('a header %s that would end a line is refused, and nothing is sent', (_, before, headers) => {
  const response = new ServerResponse(new IncomingMessage(new Socket()))
  const output = new ResponseOutput(response, 65)
  output.setHeaders(before)
  expect(() => output.send({ status: 200, headers, body: '{}' })).toThrow('Invalid character in header')
  expect(output.begun).toBe(false)
})

describe('an answer over HTTP/2', () => {
  const ask = async (method: string, answer: Answer) => {
    const server = createHttp2Server()
    server.on('stream', (stream: ServerHttp2Stream) => {
      const output = new StreamOutput(stream)
      output.setHeaders({ vary: 'Origin', 'cache-control': 'private' })
      output.send(answer)
    })
    const session = connect(`http://127.0.0.1:${await listen(server)}`)
    onTestFinished(() => session.destroy())
    const stream = session.request({ ':method': method })
    let body = ''
    stream.on('data', (chunk: Buffer) => {
      body += chunk
    })
    const [[head]] = await Promise.all([once(stream, 'response'), once(stream, 'close')])
    return { head, body }
  }
  const answer = { status: 201, head: { 'cache-control': 'no-store' }, headers: { 'x-a': 'b' }, body: 'é' }

  test('has the headers that were set before, unless it says otherwise, and its length', async () => {
    const { head, body } = await ask('GET', answer)
    expect(body).toBe('é')
    expect(head).toMatchObject({ ':status': 201, vary: 'Origin', 'cache-control': 'no-store', 'content-length': '2' })
  })

  test('to HEAD has the same headers and no body (RFC 9110, 9.3.2)', async () => {
    const { head, body } = await ask('HEAD', answer)
    expect([head[':status'], head['content-length'], body]).toEqual([201, '2', ''])
  })
})
