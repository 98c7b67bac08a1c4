import { writeSync } from 'node:fs'
import type { Socket } from 'node:net'

/**
 * A GOAWAY frame without an error and with the largest stream id. It is the first of the two that RFC 9113, 6.8 has for a
 * graceful stop: the client opens no more streams, and those that it opened before it read this are still served.
 */
const notice = Buffer.from('0000080700000000007fffffff00000000', 'hex')

/** What is needed of node's own object behind a socket. It is not documented; a test sees it go. */
interface SocketHandle {
  /** Bytes that were written and that the system has not taken yet. */
  readonly writeQueueSize: number
  /** Negative if there is none, as on Windows. */
  readonly fd: number
}

/**
 * Asks the client of an HTTP/2 connection without TLS to open no more streams. Returns whether it could: not if bytes are waiting to be
 * sent, and then it can be tried again.
 *
 * node:http2 has no function for it. After `session.goaway()`, nghttp2 drops every new stream without an answer. And
 * `socket.write()` past the session ends the process on an assertion if the system does not take the bytes at once. So
 * this writes them to the file descriptor. They land between two frames: sessions hand whole frames to the socket, and
 * the socket has sent all it was given.
 */
export function sendGoawayNotice(socket: Socket): boolean {
  if (!socket.writable) return false
  const { _handle: handle } = socket as unknown as { _handle?: SocketHandle | null }
  if (handle?.writeQueueSize !== 0 || !(handle.fd >= 0)) return false
  try {
    const written = writeSync(handle.fd, notice)
    // Half a frame would spoil all that follows.
    if (written !== notice.length) socket.destroy()
    return true
  } catch {
    // The system's buffer is full, or the client has gone.
    return false
  }
}
