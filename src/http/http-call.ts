import type { EventEmitter } from 'node:events'
import type { OutgoingHttpHeaders } from 'node:http'
import type { RequestContext } from '../base/request.ts'
import type { Call, Protocol, ResponseHeaders } from '../rpc/methods.ts'
import type { NodeResponse } from '../wire/node-request.ts'

/** What an answer is written to, of either HTTP version. */
export interface Answering extends EventEmitter {
  /** Whether it was closed, by whomever. */
  readonly closed: boolean
}

/** What the answer of a response object is written to. */
export function answeringOf(response: NodeResponse): Answering {
  return 'stream' in response ? response.stream : response
}

/** A call over HTTP. Its signal is made once somebody asks for it, because most calls end before anybody could leave. */
export class HttpCall implements Call {
  readonly protocol: Protocol
  readonly request: RequestContext
  readonly timeoutMs: number | undefined
  readonly #answering: Answering
  #responseHeaders: ResponseHeaders | undefined
  #signal: AbortSignal | undefined

  constructor(protocol: Protocol, request: RequestContext, answering: Answering, timeoutMs?: number) {
    this.protocol = protocol
    this.request = request
    this.timeoutMs = timeoutMs
    this.#answering = answering
  }

  get responseHeaders(): ResponseHeaders {
    this.#responseHeaders ??= {}
    return this.#responseHeaders
  }

  /** The headers to send with the response; `undefined` if nobody asked for them to set one, as in most calls. */
  get ownHeaders(): OutgoingHttpHeaders | undefined {
    return this.#responseHeaders as OutgoingHttpHeaders | undefined
  }

  /**
   * Aborts when the answer is closed: it is complete, or the client has gone. Which of the two it is cannot be told: node
   * ends the streams of a connection that is lost as if they were complete.
   */
  get signal(): AbortSignal {
    this.#signal ??= closingOf(this.#answering)
    return this.#signal
  }
}

function closingOf(answering: Answering): AbortSignal {
  const controller = new AbortController()
  if (answering.closed) controller.abort()
  else answering.once('close', () => controller.abort())
  return controller.signal
}
