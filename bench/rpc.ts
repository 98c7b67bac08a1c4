import { create, type DescMethod, type MessageInitShape, toJsonString } from '@bufbuild/protobuf'
import { pathOf } from './grpc.ts'
import type { Http1Connection } from './http1.ts'

/** Makes a unary call over Connect JSON. */
export async function rpc<Method extends DescMethod>(
  connection: Http1Connection,
  method: Method,
  message: MessageInitShape<Method['input']>,
  // biome-ignore lint/suspicious/noExplicitAny: callers look at fields that they name.
): Promise<any> {
  return JSON.parse((await connection.post(pathOf(method), 'application/json', jsonOf(method, message))).toString())
}

/** A request's message as JSON. */
export function jsonOf<Method extends DescMethod>(method: Method, message: MessageInitShape<Method['input']>): string {
  return toJsonString(method.input, create(method.input, message))
}
