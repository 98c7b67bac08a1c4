import type { Tracing } from '../../../base/tracing.ts'
import { type CountersignError, refused } from '../../../shared/errors.ts'
import type { StartWarning } from '../wallet.ts'

/** The parts of viem that are used, loaded only if contract wallets are asked about. */
export type Viem = typeof import('viem')

/** Longest time in milliseconds for all that an RPC is asked about one proof, and for its check at the start. */
const timeLimitMs = 5_000

/** Answer of a JSON-RPC server, of which nothing is believed yet. */
export interface RpcAnswer {
  readonly result?: unknown
  readonly error?: { readonly code?: unknown; readonly message?: unknown } | null
}

/** A request to an RPC, as `eth_…` methods take it. */
export type RpcRequest = (method: string, params: readonly unknown[]) => Promise<RpcAnswer>

/** What an RPC can be asked within the time limit. */
export interface RpcCalls {
  readonly viem: Viem
  readonly request: RpcRequest
}

/** Why an RPC cannot be asked. Says nothing of its address, which may contain a key. */
export class RpcFailure extends Error {
  override readonly name = 'RpcFailure'
}

/** No answer in time. */
export class RpcTimeout extends RpcFailure {}

/** Loads viem. Throws a `TypeError` of one line if it is not installed. */
async function loadViem(): Promise<Viem> {
  try {
    return await import('viem')
  } catch (cause) {
    throw new TypeError(
      'evmRpc (COUNTERSIGN_EVM_RPC) needs the package viem, which is not installed: npm install viem',
      {
        cause,
      },
    )
  }
}

/** What is reported of requests. */
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
   * Checks at the start that the RPC serves its chain. Rejects with a `TypeError` of one line if viem is missing or the
   * chain is another one. An RPC that does not answer is a warning, and is checked before it is asked anything else.
   */
  async checkAtStart(warn: StartWarning): Promise<void> {
    try {
      await this.#within(({ request }) => this.#check(request))
    } catch (error) {
      if (!(error instanceof RpcFailure)) throw error
      const { chainId } = this
      warn('an RPC does not answer; it will be checked before its first use', { chainId, cause: error.message })
    }
  }

  /**
   * Asks, with a limit of 5 s on everything together. A failure of the RPC, its chain or viem is EVM_RPC_UNAVAILABLE:
   * it says nothing about a signature.
   */
  async ask<Answer>(ask: (calls: RpcCalls) => Promise<Answer>): Promise<Answer> {
    try {
      return await this.#within(async (calls) => {
        if (!this.#isChecked) await this.#check(calls.request)
        return await ask(calls)
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

  async #within<Answer>(ask: (calls: RpcCalls) => Promise<Answer>): Promise<Answer> {
    const viem = await loadViem()
    const signal = AbortSignal.timeout(timeLimitMs)
    // Errors of JSON-RPC are told apart here: viem's own classes call a limit on gas a revert.
    const transport = viem.http(this.#url, {
      raw: true,
      retryCount: 0,
      timeout: timeLimitMs,
      // A redirect is a failure: the operator has set the servers that are believed. 'error' is not known to every
      // runtime.
      fetchOptions: { redirect: 'manual' },
      ...(this.#tracing && { onFetchRequest: (_, init) => withHeaders(init, this.#tracing?.headers()) }),
    })
    const client = viem.createClient({ transport })
    const send: RpcRequest = async (method, params) => {
      try {
        return (await client.request({ method, params } as never, { signal, retryCount: 0 })) as RpcAnswer
      } catch (error) {
        if (signal.aborted) throw new RpcTimeout(`${method}: no answer within ${timeLimitMs} ms`)
        throw new RpcFailure(`${method}: ${kindOf(error)}`)
      }
    }
    const { chainId } = this
    const tracing = this.#tracing
    const request: RpcRequest =
      tracing === undefined
        ? send
        : (method, params) => tracing.step({ kind: 'evm rpc', method, chainId }, () => send(method, params))
    return await ask({ viem, request })
  }
}

/** What a request is made with, with further headers. */
function withHeaders(init: RequestInit, headers: Readonly<Record<string, string>> | undefined): RequestInit {
  const all = new Headers(init.headers)
  for (const [name, value] of Object.entries(headers ?? {})) all.set(name, value)
  return { ...init, headers: all }
}

/** The answer to a question that an RPC can always answer. Throws an {@link RpcFailure} for an error of JSON-RPC. */
export function succeeded(method: string, answer: RpcAnswer): RpcAnswer {
  if (answer.error === undefined || answer.error === null) return answer
  throw new RpcFailure(`${method}: JSON-RPC error ${Number(answer.error.code)}`)
}

/**
 * What failed, without any text that may contain the RPC's address: the HTTP status, or the code of a network error.
 */
function kindOf(error: unknown): string {
  for (let one = error; one instanceof Error; one = one.cause) {
    if ('status' in one && typeof one.status === 'number') return `HTTP status ${one.status}`
    if ('code' in one && typeof one.code === 'string' && /^[A-Z0-9_]{1,60}$/.test(one.code)) return one.code
  }
  return 'no usable answer'
}
