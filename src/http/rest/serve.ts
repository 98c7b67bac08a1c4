import type { OutgoingHttpHeaders } from 'node:http'
import type { JsonObject } from '@bufbuild/protobuf'
import { protoCamelCase } from '@bufbuild/protobuf/reflect'
import { retryAfterSeconds, toFailure } from '../../rpc/errors.ts'
import type { Invoker } from '../../rpc/invoke.ts'
import type { UnaryMethod } from '../../rpc/methods.ts'
import type { CountersignError } from '../../shared/errors.ts'
import { supportedEncodings } from '../../wire/body.ts'
import type { Output } from '../../wire/output.ts'
import { type Exchange, HttpCall } from '../exchange.ts'
import { refusals } from '../refusals.ts'
import { inputFromRest, type ReadJson, restFromOutput } from './json.ts'

/** A request to a REST endpoint. */
export interface RestExchange {
  /** Reads the message of the RPC behind the endpoint. */
  readonly input: ReadJson
  readonly exchange: Exchange
  readonly invoker: Invoker
}

/** Serves a REST endpoint. */
export async function serveRest(method: UnaryMethod, { input, exchange, invoker }: RestExchange): Promise<void> {
  const { output, context } = exchange
  const { desc } = method
  const call = new HttpCall({ protocol: 'rest', request: context, answering: output.answering })
  try {
    const text = await invoker.unary({
      method,
      call,
      readInput: async () => inputFromRest(desc.input, await input(exchange)),
      write: (reply) => JSON.stringify(restFromOutput(desc.output, reply)),
    })
    sendJsonText(output, 200, call.ownHeaders, text)
  } catch (thrown) {
    sendFailure(output, toFailure(thrown))
  }
}

/** Sends {@link failureBody}, with the HTTP status of the reason or a more fitting one. */
export function sendFailure(output: Output, failure: CountersignError, status = failure.httpStatus): void {
  const { retryAfterMs } = failure
  const retry = retryAfterMs === undefined ? {} : { 'retry-after': retryAfterSeconds(retryAfterMs) }
  const accepted = refusals.isUnknownEncoding(failure) ? { 'accept-encoding': supportedEncodings } : {}
  const headers = { ...retry, ...accepted }
  sendJson(output, status, headers, failureBody(failure))
}

/**
 * A failure in REST's JSON: `{"code", "message"}`, in which fields have REST's names; `metadata`, if any, with keys in
 * lowerCamelCase; and for a wrong code `triesLeft`, the number of remaining tries.
 */
export function failureBody({
  reason,
  message,
  metadata,
}: CountersignError): JsonObject & Record<'code' | 'message', string> {
  const fields = metadata.field?.split(', ') ?? []
  const inRest = (text: string): string =>
    fields.reduce((renamed, name) => renamed.replaceAll(new RegExp(`\\b${name}\\b`, 'g'), protoCamelCase(name)), text)
  const named = Object.entries(metadata).map(([key, value]) => [
    protoCamelCase(key),
    key === 'field' ? inRest(value) : value,
  ])
  const tries = metadata.tries_left
  return {
    code: reason,
    message: inRest(message),
    ...(named.length === 0 ? {} : { metadata: Object.fromEntries(named) }),
    ...(tries === undefined ? {} : { triesLeft: Number(tries) }),
  }
}

/** Sends JSON with `cache-control: no-store`. */
export function sendJson(output: Output, status: number, headers: OutgoingHttpHeaders, json: JsonObject): void {
  sendJsonText(output, status, headers, JSON.stringify(json))
}

const jsonHead = { 'content-type': 'application/json', 'cache-control': 'no-store' } as const

function sendJsonText(output: Output, status: number, headers: OutgoingHttpHeaders | undefined, body: string): void {
  output.send({ status, head: jsonHead, headers, body })
}
