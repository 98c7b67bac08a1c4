// The assertion is that it compiles, here and in a project that has the package installed (consumer.test.ts).
import { Server, type ServerUnaryCall, type ServerWritableStream } from '@grpc/grpc-js'
import { createSessionVerifier } from 'countersign/backend'
import { requireSession, sessionOf } from 'countersign/backend/grpc'

const verifier = createSessionVerifier({ url: 'http://localhost:8080' })
export const server = new Server({ interceptors: [requireSession(verifier, { groups: ['staff'] })] })

export function unary(call: ServerUnaryCall<object, object>): string {
  // @ts-expect-error: an address is text.
  const address: number = sessionOf(call).address
  return String(address)
}

export function stream(call: ServerWritableStream<object, object>): string {
  return sessionOf(call).userId
}
