import type { Socket } from 'node:net'

/** Destroys a socket after a delay, in milliseconds, unless it has closed by then. */
export function destroyLater(socket: Socket, delayMs: number): void {
  const timer = setTimeout(() => socket.destroy(), delayMs)
  socket.once('close', () => clearTimeout(timer))
}
