import type { DescMethod } from '@bufbuild/protobuf'
import { sendRaw } from './raw-http.ts'
import { type RpcAnswer, readRpcAnswer } from './rpc-answer.ts'

/** Calls an RPC with a body to the letter, over HTTP/1.1. Headers and trailers of the answer are together. */
export async function callRaw(
  url: string,
  method: DescMethod,
  contentType: string,
  body: Buffer,
  headers: Record<string, string> = {},
): Promise<RpcAnswer> {
  const { host, port } = new URL(url)
  const answer = await sendRaw(Number(port), {
    method: 'POST',
    target: `/${method.parent.typeName}/${method.name}`,
    version: '1.1',
    headers: [['host', host], ['connection', 'close'], ['content-type', contentType], ...Object.entries(headers)],
    body,
  })
  if (answer === undefined) throw new Error('the server hung up')
  return readRpcAnswer(answer, method)
}

/** Puts flags and length in front of a message. */
export function envelope(data: Uint8Array, flags = 0): Buffer {
  const head = Buffer.alloc(5)
  head.writeUInt8(flags, 0)
  head.writeUInt32BE(data.length, 1)
  return Buffer.concat([head, data])
}
