import { inspect } from 'node:util'
import type { DescMethod } from '@bufbuild/protobuf'
import { type RawAnswer, sendRaw } from '../../support/raw-http.ts'
import { http2Sender } from '../../support/raw-http2.ts'
import { type RpcFailure, readRpcAnswer } from '../../support/rpc-answer.ts'
import { inParallel } from '../../wire/differential/fixture.ts'
import type { Input } from './inputs.ts'

/** Longest wait for an answer, milliseconds. */
const timeoutMs = 10_000

/** Sends inputs, each with its number, to a service, several at a time. Resolves with what is wrong with the answers. */
export async function faultsOf(
  url: string,
  inputs: readonly (readonly [number: number, input: Input])[],
  seen: Seen,
): Promise<string[]> {
  const send = sender(url)
  const faults: string[] = []
  await inParallel(inputs, async ([number, input]) => {
    const fault = await send(input).then((answer) => faultOf(input, answer, seen), String)
    if (fault !== undefined) faults.push(`input ${number}: ${fault}: ${shown(input)}`)
  })
  return faults
}

function shown({ http, request }: Input): string {
  return inspect({ http, ...request, body: request.body.toString('latin1').slice(0, 2000) }, { depth: 4 })
}

/** Sends inputs to a service, over several connections. */
function sender(url: string): (input: Input) => Promise<RawAnswer | undefined> {
  const overHttp2 = Array.from({ length: 4 }, () => http2Sender(url))
  let next = 0
  return async ({ http, request, enough }) => {
    if (http === '1.1') return await sendRaw(Number(new URL(url).port), request, enough)
    next = (next + 1) % overHttp2.length
    return await withinTime(overHttp2[next]!(request))
  }
}

async function withinTime<T>(answer: Promise<T>): Promise<T> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`no answer within ${timeoutMs} ms`)), timeoutMs)
  })
  try {
    return await Promise.race([answer, late])
  } finally {
    clearTimeout(timer)
  }
}

/** Codes with which a server says that it is at fault. */
const faultCodes: ReadonlySet<string> = new Set(['unknown', 'internal', 'unavailable', 'data_loss'])

interface Exception {
  readonly why: string
  readonly when: (failure: RpcFailure) => boolean
}

/**
 * Failures that look like the server's own and are not. The list may only shrink: the test fails at an entry that
 * nothing needs.
 */
export const exceptions: readonly Exception[] = [
  {
    why: 'The deadline is the caller\u2019s own. Connect\u2019s HTTP status for it is 504.',
    when: ({ code }) => code === 'deadline_exceeded',
  },
]

/** Whether a status says that the server is at fault. 501 is for methods and compressions that it does not know. */
function isFault(status: number): boolean {
  return status >= 500 && status !== 501
}

/** What is wrong with the answer to an input; `undefined` if nothing is. */
function faultOf({ http, method, request }: Input, answer: RawAnswer | undefined, seen: Seen): string | undefined {
  if (answer === undefined) return 'hung up'
  const { status, body } = answer
  if (method === undefined) return isFault(status) ? `status ${status}: ${body}` : undefined
  const { headers, messages, failure, other } = readRpcAnswer(answer, method)
  const isGrpc = headers.get('content-type')?.startsWith('application/grpc') === true
  if (isGrpc && !headers.has('grpc-status')) return 'no grpc-status'
  if (isFault(status) || faultCodes.has(failure?.code ?? '')) {
    const exception = exceptions.find(({ when }) => failure !== undefined && when(failure))
    if (exception === undefined) return `status ${status}, ${inspect(failure ?? other)}`
    seen.exceptions.add(exception)
  }
  const contentType = request.headers.find(([name]) => name === 'content-type')?.[1] ?? ''
  seen.ways.add(wayOf(method, contentType, http))
  seen.outcomes.add(failure?.code ?? (other === undefined ? 'ok' : String(status)))
  if (messages.length > 0) seen.served.add(method)
  return undefined
}

/** An RPC with a content type and a version of HTTP. */
export function wayOf({ parent, name }: DescMethod, contentType: string, http: Input['http']): string {
  return `${parent.typeName}/${name} in ${contentType} over HTTP/${http}`
}

/** What became of inputs. */
export class Seen {
  /** As {@link wayOf} names them. */
  readonly ways = new Set<string>()
  /** Codes of failures, 'ok', or statuses of refusals before an RPC was found. */
  readonly outcomes = new Set<string>()
  /** RPCs that have answered with a message. */
  readonly served = new Set<DescMethod>()
  readonly exceptions = new Set<Exception>()
}
