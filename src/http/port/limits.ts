import type { Socket } from 'node:net'

/** Time limits of a connection, in milliseconds. */
export interface ConnectionTimeouts {
  /**
   * From the connection's start to the bytes that tell its protocol; with HTTP/2, to the end of the client's preface.
   */
  readonly openingMs: number
  /** For the headers of an HTTP/1.1 request; at most `requestMs`. Answered with 408, up to a third later. */
  readonly headersMs: number
  /** For a whole request, including its body. HTTP/1.1 answers with 408, HTTP/2 cancels the stream. */
  readonly requestMs: number
  /** Between two requests of an HTTP/1.1 connection. Longer than the 60 s after which common load balancers let go. */
  readonly keepAliveMs: number
  /**
   * While nothing moves in either direction: an HTTP/2 connection without requests, or a client that does not read its
   * answer. A server stream stays open if it sends something more often than this, such as a heartbeat every 15 s.
   */
  readonly idleMs: number
  /**
   * For an answer of which its client reads nothing, from the last time that it read. The answer then loses its stream
   * or, over HTTP/1.1, its connection.
   */
  readonly unreadMs: number
  /** Added to `unreadMs` for each KiB that waits to be read. */
  readonly unreadMsPerKiB: number
  /**
   * From the last bytes sent to a client that was turned away, so that it can read them, to the end of its connection.
   */
  readonly lingerMs: number
}

export const defaultTimeouts: ConnectionTimeouts = {
  openingMs: 10_000,
  headersMs: 10_000,
  requestMs: 10_000,
  keepAliveMs: 65_000,
  idleMs: 120_000,
  unreadMs: 30_000,
  // A slow mobile connection has six times this rate.
  unreadMsPerKiB: 1_000,
  lingerMs: 2_000,
}

/**
 * Largest headers of a request, in bytes. HTTP/1.1 answers larger ones with 431, HTTP/2 resets the stream. Until an
 * HTTP/2 client has acknowledged the server's settings, nghttp2 accepts up to 64 KiB from it.
 */
export const maxHeaderBytes: number = 16 * 1024

/**
 * Most requests in progress on one connection. HTTP/2 refuses streams beyond it; an HTTP/1.1 connection that pipelines
 * more is cut off.
 */
export const maxConcurrentRequests: number = 250

/** How long a client has read nothing of what waits for it. */
export class Unread {
  #bytes: number | undefined
  #since = 0

  /** The client has read something. */
  restart(): void {
    this.#bytes = undefined
  }

  /**
   * Whether the client has had its time. `bytes` is what waits for it, 0 if only the end of its answer does;
   * `undefined` if nothing does. Call it again and again.
   */
  isOverdue(bytes: number | undefined, { unreadMs, unreadMsPerKiB }: ConnectionTimeouts): boolean {
    const now = performance.now()
    if (bytes === undefined || this.#bytes === undefined || bytes < this.#bytes) this.#since = now
    this.#bytes = bytes
    return bytes !== undefined && now - this.#since >= unreadMs + (bytes / 1024) * unreadMsPerKiB
  }
}

/** Destroys a socket after a delay, in milliseconds, unless it has closed by then. */
export function destroyLater(socket: Socket, delayMs: number): void {
  const timer = setTimeout(() => socket.destroy(), delayMs)
  socket.once('close', () => clearTimeout(timer))
}
