import type { MessageInitShape } from '@bufbuild/protobuf'
import { WatchOrderResponseSchema } from '../../../gen/server/countersign/v1/order_service_pb.ts'
import { restFromOutput } from './json.ts'

/** The headers of a stream of server-sent events. */
export const eventStreamHeaders: Readonly<Record<'content-type' | 'cache-control' | 'x-accel-buffering', string>> = {
  'content-type': 'text/event-stream',
  'cache-control': 'no-store, no-transform',
  // Without it, nginx buffers responses.
  'x-accel-buffering': 'no',
}

/**
 * An order's event as a server-sent event (WHATWG HTML, 9.2).
 *
 * A transition is a message with its sequence as the id, so that a client that reconnects with Last-Event-ID misses
 * nothing. Heartbeats are events named `heartbeat`. An event named `reconnect` is the last of a stream that the server
 * ends although the order is still live.
 */
export function encodeEvent(event: MessageInitShape<typeof WatchOrderResponseSchema>): string {
  const data = JSON.stringify(restFromOutput(WatchOrderResponseSchema, event))
  const name = event.heartbeat ? 'event: heartbeat\n' : event.reconnect ? 'event: reconnect\n' : ''
  const id = name === '' ? `id: ${event.sequence}\n` : ''
  return `${name}${id}data: ${data}\n\n`
}
