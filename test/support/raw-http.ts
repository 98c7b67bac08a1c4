import { connect } from 'node:net'

/** A request as its bytes say it: nothing is added, checked or put right. */
export interface RawRequest {
  readonly method: string
  readonly target: string
  readonly version: '1.0' | '1.1'
  /** Name and value of each header field. Say `connection: close`: the answer ends with the connection. */
  readonly headers: readonly (readonly [string, string])[]
  readonly body: Buffer
  /** Whether the body goes out in chunks, without its length. */
  readonly chunked?: boolean
}

/** An answer as it came. */
export interface RawAnswer {
  readonly status: number
  readonly headers: Headers
  readonly body: Buffer
  /** What came after a chunked body. */
  readonly trailers: Headers
}

/** Longest wait for an answer, milliseconds. */
const timeoutMs = 10_000

/**
 * Sends a request over a connection of its own, and hangs up once the answer has ended or contains `enough`.
 * `undefined` if the server hung up without an answer.
 */
export async function sendRaw(port: number, request: RawRequest, enough?: string): Promise<RawAnswer | undefined> {
  const received = await new Promise<Buffer>((resolve, reject) => {
    const chunks: Buffer[] = []
    const socket = connect(port, '127.0.0.1')
    socket.setTimeout(timeoutMs, () => {
      reject(new Error(`no answer to ${request.method} ${request.target} within ${timeoutMs} ms`))
      socket.destroy()
    })
    socket.on('data', (chunk: Buffer) => {
      chunks.push(chunk)
      if (enough !== undefined && Buffer.concat(chunks).includes(enough)) socket.destroy()
    })
    // A server that refuses a body resets the connection after its answer.
    socket.on('error', () => {})
    socket.on('close', () => resolve(Buffer.concat(chunks)))
    socket.write(bytesOf(request))
  })
  return readAnswer(received, request.method, enough)
}

/** Size of the chunks that a body goes out in, bytes. */
const chunkBytes = 16_384

/** A request over HTTP/1, as it goes out. */
export function bytesOf({ method, target, version, headers, body, chunked = false }: RawRequest): Buffer {
  const lines = [`${method} ${target} HTTP/${version}`, ...headers.map(([name, value]) => `${name}: ${value}`)]
  const parts: Buffer[] = []
  if (chunked) {
    lines.push('transfer-encoding: chunked')
    for (let at = 0; at < body.length; at += chunkBytes) {
      const chunk = body.subarray(at, at + chunkBytes)
      parts.push(Buffer.from(`${chunk.length.toString(16)}\r\n`), chunk, Buffer.from('\r\n'))
    }
    parts.push(Buffer.from('0\r\n\r\n'))
  } else {
    lines.push(`content-length: ${body.length}`)
    parts.push(body)
  }
  return Buffer.concat([Buffer.from(`${lines.join('\r\n')}\r\n\r\n`, 'latin1'), ...parts])
}

function readAnswer(received: Buffer, method: string, enough: string | undefined): RawAnswer | undefined {
  const headEnd = received.indexOf('\r\n\r\n')
  if (headEnd === -1) return undefined
  const [statusLine = '', ...lines] = received.subarray(0, headEnd).toString('latin1').split('\r\n')
  const status = Number(statusLine.split(' ')[1])
  const rest = received.subarray(headEnd + 4)
  // 100 Continue, and the answer proper after it.
  if (status < 200) return readAnswer(rest, method, enough)
  const headers = headersOf(lines)
  const cutByClient = enough !== undefined && received.includes(enough)
  if (headers.get('transfer-encoding') === 'chunked' && method !== 'HEAD' && !cutByClient) {
    return { status, headers, ...dechunk(rest) }
  }
  return { status, headers, body: rest, trailers: new Headers() }
}

function dechunk(bytes: Buffer): { body: Buffer; trailers: Headers } {
  const parts: Buffer[] = []
  for (let at = 0; ; ) {
    const lineEnd = bytes.indexOf('\r\n', at)
    if (lineEnd === -1) throw new Error('the answer ends in the middle of its body')
    const length = Number.parseInt(bytes.subarray(at, lineEnd).toString('latin1'), 16)
    const start = lineEnd + 2
    if (length === 0) {
      const lines = bytes.subarray(start).toString('latin1').split('\r\n')
      return { body: Buffer.concat(parts), trailers: headersOf(lines.filter((line) => line !== '')) }
    }
    parts.push(bytes.subarray(start, start + length))
    at = start + length + 2
  }
}

function headersOf(lines: readonly string[]): Headers {
  const headers = new Headers()
  for (const line of lines) {
    const colon = line.indexOf(':')
    headers.append(line.slice(0, colon), line.slice(colon + 1).trim())
  }
  return headers
}
