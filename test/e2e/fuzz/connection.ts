import { connect } from 'node:net'

/** Longest time from the last byte of either side to the end of the connection, milliseconds. Beyond, it hangs. */
const hangMs = 20_000

/** Time without a byte from the server after which the client says that it is done, milliseconds. */
const quietMs = 40

/**
 * Sends bytes over a connection of their own. Once the server has been quiet for a moment, the client ends its side,
 * and waits for the server to end the other. Resolves with what came. Rejects if the server lets the connection hang.
 */
export async function exchange(port: number, bytes: Buffer): Promise<Buffer> {
  return await new Promise((resolve, reject) => {
    const chunks: Buffer[] = []
    const socket = connect({ port, host: '127.0.0.1', allowHalfOpen: true })
    let quiet = setTimeout(() => {}, 0)
    const waitForQuiet = (): void => {
      clearTimeout(quiet)
      quiet = setTimeout(() => socket.end(), quietMs)
    }
    socket.setTimeout(hangMs, () => {
      reject(new Error(`the connection hangs for ${hangMs} ms`))
      socket.destroy()
    })
    socket.on('connect', waitForQuiet)
    socket.on('data', (chunk: Buffer) => {
      chunks.push(chunk)
      waitForQuiet()
    })
    socket.on('end', () => socket.end())
    // A server that refuses what it is sent may reset the connection.
    socket.on('error', () => {})
    socket.on('close', () => {
      clearTimeout(quiet)
      resolve(Buffer.concat(chunks))
    })
    socket.write(bytes)
  })
}

/**
 * Statuses with which a server says that it is at fault. 501 is for a compression that it does not know, 503 is for
 * what is away or full, 504 for the caller's own deadline.
 */
export function isFault(status: number): boolean {
  return status >= 500 && ![501, 503, 504, 505].includes(status)
}

/**
 * The HPACK indexes of the statuses that have one (RFC 7541, appendix A). They are at the beginning of a HEADERS
 * frame's block.
 */
const indexed: ReadonlyMap<number, number> = new Map([
  [0x88, 200],
  [0x89, 204],
  [0x8c, 400],
  [0x8d, 404],
  [0x8e, 500],
])

/** The statuses of the answers on a connection; over HTTP/2 those that have an index only. */
export function statusesIn(received: Buffer, http: '1.1' | '2'): number[] {
  if (http === '1.1') {
    const lines = received.toString('latin1').matchAll(/(?:^|\n)HTTP\/1\.[01] (\d{3}) /g)
    return [...lines].map(([, status]) => Number(status))
  }
  const statuses: number[] = []
  for (let at = 0; at + 9 < received.length; at += 9 + received.readUIntBE(at, 3)) {
    const status = received.readUInt8(at + 3) === 1 ? indexed.get(received.readUInt8(at + 9)) : undefined
    if (status !== undefined) statuses.push(status)
  }
  return statuses
}
