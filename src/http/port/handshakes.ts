import { constants } from 'node:crypto'
import type { Socket } from 'node:net'
import { createServer, type Server, type TLSSocket } from 'node:tls'
import type { KeyPair } from '../../pem.ts'

/** The first byte of every TLS connection and of no HTTP request: the record type of a handshake (RFC 8446, 5.1). */
export const tlsStart = 0x16

/**
 * Whatever NODE_OPTIONS says: at least TLS 1.2. A client has no reason to ask for a second handshake on the same connection, which
 * costs the server more than the client.
 */
const rules = { minVersion: 'TLSv1.2', secureOptions: constants.SSL_OP_NO_RENEGOTIATION } as const

/** Makes TLS connections of accepted ones. HTTP/2 and HTTP/1.1 are offered by ALPN, in this order. */
export class Handshakes {
  /** It never listens: it is handed the connections that others accepted. */
  readonly #server: Server
  /** What to do with each connection once its handshake is over, by its two ends. */
  readonly #waiting = new Map<string, (secured: TLSSocket) => void>()

  constructor(pair: KeyPair) {
    this.#server = createServer({ ...pair, ...rules, ALPNProtocols: ['h2', 'http/1.1'] })
    this.#server.on('secureConnection', (secured) => {
      const done = this.#waiting.get(endsOf(secured))
      // The client has gone already.
      if (done === undefined) secured.destroy()
      else done(secured)
    })
    // Whatever else the client sent instead of a handshake, there is nobody to answer.
    this.#server.on('tlsClientError', (_, secured) => secured.destroy())
  }

  /** Uses another pair for the connections that come from now on. */
  replace(pair: KeyPair): void {
    this.#server.setSecureContext({ ...pair, ...rules })
  }

  /**
   * Begins the handshake of a connection, whose first bytes may have been read if they were put back. If it fails, the connection
   * is closed. It has no time limit of its own.
   */
  begin(socket: Socket, done: (secured: TLSSocket) => void): void {
    const ends = endsOf(socket)
    this.#waiting.set(ends, done)
    socket.once('close', () => this.#waiting.delete(ends))
    this.#server.emit('connection', socket)
  }
}

/** No two live connections have the same. The server tells of the TLS connection only, not of the one that it was made of. */
function endsOf({ remoteAddress, remotePort, localAddress, localPort }: Socket): string {
  return [remoteAddress, remotePort, localAddress, localPort].join(' ')
}
