import type { Tracing } from '../../../base/tracing.ts'
import { type CountersignError, refused } from '../../../shared/errors.ts'
import type { StartWarning } from '../wallet.ts'

/** Longest time in milliseconds for all that an RPC is asked about one proof, and for its check at the start. */
const timeLimitMs = 5_000

/** Largest answer of an RPC: 10 MiB. */
const maxBytes = 10 * 1024 * 1024

/** Answer of a JSON-RPC server, unchecked. */
export interface RpcAnswer {
  readonly result?: unknown
  readonly error?: { readonly code?: unknown; readonly message?: unknown } | null
}

/** A request to an RPC, as `eth_…` methods take it. */
export type RpcRequest = (method: string, params: readonly unknown[]) => Promise<RpcAnswer>

/** Failure of an RPC. The message never has its address, which may contain a key. */
export class RpcFailure extends Error {
  override readonly name = 'RpcFailure'
}

/** No answer in time. */
export class RpcTimeout extends RpcFailure {}

/** Traces of requests, and headers that carry them on. */
type RequestTracing = Pick<Tracing, 'step' | 'headers'>

/** The JSON-RPC server of one chain. It is checked once that it serves the chain, before anything else is asked. */
export class EvmRpc {
  readonly chainId: string
  readonly #url: string
  readonly #tracing: RequestTracing | undefined
  #isChecked = false

  /** Without tracing, nothing is traced. */
  constructor(chainId: string, url: string, tracing?: RequestTracing) {
    this.chainId = chainId
    this.#url = url
    this.#tracing = tracing
  }

  /**
   * Checks at the start that the RPC serves its chain. Rejects with a `TypeError` of one line if the chain is another
   * one. An RPC that does not answer is a warning, and is checked before it is asked anything else.
   */
  async checkAtStart(warn: StartWarning): Promise<void> {
    try {
      await this.#within((request) => this.#check(request))
    } catch (error) {
      if (!(error instanceof RpcFailure)) throw error
      const { chainId } = this
      warn('an RPC does not answer; it will be checked before its first use', { chainId, cause: error.message })
    }
  }

  /**
   * Asks, with a limit of 5 s on everything together. A failure of the RPC or its chain is EVM_RPC_UNAVAILABLE: it says
   * nothing about a signature.
   */
  async ask<Answer>(ask: (request: RpcRequest) => Promise<Answer>): Promise<Answer> {
    try {
      return await this.#within(async (request) => {
        if (!this.#isChecked) await this.#check(request)
        return await ask(request)
      })
    } catch (error) {
      throw this.unavailable(error)
    }
  }

  /** The failure of a question that the RPC did not answer. `cause` is for the log. */
  unavailable(cause: unknown): CountersignError {
    return refused('EVM_RPC_UNAVAILABLE', { retryAfterMs: 2_000, metadata: { chain_id: this.chainId }, cause })
  }

  async #check(request: RpcRequest): Promise<void> {
    const { result } = succeeded('eth_chainId', await request('eth_chainId', []))
    if (typeof result !== 'string' || !/^0x[0-9a-f]{1,16}$/i.test(result))
      throw new RpcFailure('eth_chainId: no number')
    const served = BigInt(result).toString()
    if (served !== this.chainId) {
      const { host } = new URL(this.#url)
      throw new TypeError(
        `evmRpc (COUNTERSIGN_EVM_RPC) has a server for chain ${this.chainId}, at ${host}, that serves chain ${served}`,
      )
    }
    this.#isChecked = true
  }

  async #within<Answer>(ask: (request: RpcRequest) => Promise<Answer>): Promise<Answer> {
    const signal = AbortSignal.timeout(timeLimitMs)
    const { chainId } = this
    return await ask(async (method, params) => {
      const send = (): Promise<RpcAnswer> => this.#send(method, params, signal)
      return await (this.#tracing?.step({ kind: 'evm rpc', method, chainId }, send) ?? send())
    })
  }

  async #send(method: string, params: readonly unknown[], signal: AbortSignal): Promise<RpcAnswer> {
    try {
      return await this.#post(JSON.stringify({ jsonrpc: '2.0', id: 1, method, params }), signal)
    } catch (error) {
      if (signal.aborted) throw new RpcTimeout(`${method}: no answer within ${timeLimitMs} ms`)
      throw new RpcFailure(`${method}: ${kindOf(error)}`)
    }
  }

  /** Posts a request. An error of JSON-RPC is an answer, whatever the HTTP status. */
  async #post(body: string, signal: AbortSignal): Promise<RpcAnswer> {
    const url = new URL(this.#url)
    const headers = new Headers({ 'content-type': 'application/json', ...this.#tracing?.headers() })
    if (url.username !== '') {
      // fetch takes no credentials in an address.
      headers.set('authorization', `Basic ${btoa(decodeURIComponent(`${url.username}:${url.password}`))}`)
      url.username = ''
      url.password = ''
    }
    // A redirect is a failure: the operator has set the servers that are believed. 'error' is not known to every
    // runtime.
    const response = await fetch(url, { method: 'POST', headers, body, redirect: 'manual', signal })
    const answer = readAnswer(await boundedText(response))
    const { code, message } = answer?.error ?? {}
    const isError = typeof code === 'number' && typeof message === 'string'
    if (!response.ok && !isError) throw new RpcFailure(`HTTP status ${response.status}`)
    if (answer === undefined) throw new RpcFailure(unusable)
    return answer
  }
}

/** The text of an answer. Rejects if it has more than {@link maxBytes}. */
async function boundedText({ body }: Response): Promise<string> {
  const reader = body?.getReader()
  const decoder = new TextDecoder()
  let text = ''
  let length = 0
  for (let part = await reader?.read(); part?.done === false; part = await reader?.read()) {
    length += part.value.length
    if (length > maxBytes) {
      await reader?.cancel()
      throw new RpcFailure(`more than ${maxBytes} bytes`)
    }
    text += decoder.decode(part.value, { stream: true })
  }
  return text
}

/** The JSON of an answer; `undefined` for any other text, and for null. */
function readAnswer(text: string): RpcAnswer | undefined {
  try {
    return JSON.parse(text) ?? undefined
  } catch {
    return undefined
  }
}

/** The answer to a question that an RPC can always answer. Throws an {@link RpcFailure} for an error of JSON-RPC. */
export function succeeded(method: string, answer: RpcAnswer): RpcAnswer {
  if (answer.error === undefined || answer.error === null) return answer
  throw new RpcFailure(`${method}: JSON-RPC error ${Number(answer.error.code)}`)
}

/** What failed, without any text that may contain the RPC's address: one of this file's, or a network error's code. */
function kindOf(error: unknown): string {
  if (error instanceof RpcFailure) return error.message
  for (let one = error; one instanceof Error; one = one.cause) {
    if ('code' in one && typeof one.code === 'string' && /^[A-Z0-9_]{1,60}$/.test(one.code)) return one.code
  }
  return unusable
}

const unusable = 'no usable answer'
