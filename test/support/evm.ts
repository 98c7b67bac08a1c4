import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import { createEVM, type EVMRunCallOpts } from '@ethereumjs/evm'
import { onTestFinished } from 'vitest'

type Hex = `0x${string}`
type Bytes = Uint8Array

/** A request that a JSON-RPC server got. */
export interface RpcCall {
  readonly method: string
  // biome-ignore lint/suspicious/noExplicitAny: parameters of any method.
  readonly params: readonly any[]
}

/** Answers a call in its own way, or returns false, and the server answers as it would. */
export type RpcTrouble = (call: RpcCall, response: ServerResponse) => boolean | Promise<boolean>

/** A JSON-RPC server over an EVM of its own. */
export interface TestChain {
  /** Address with a key in its path, as those of providers have. */
  readonly url: string
  /** What it was asked, in order. */
  readonly calls: readonly RpcCall[]
  /** Puts a contract's code at an address; by default at a new one. Resolves with the address in lower case. */
  deploy(runtime: string, address?: string): Promise<Hex>
  /** Runs a transaction, which changes the state. */
  transact(to: string, data: string): Promise<void>
  /** Lets calls be answered badly from now on; without trouble, well again. */
  trouble(trouble?: RpcTrouble): void
}

/** The key in the address of every {@link TestChain}, which must not be shown anywhere. */
export const rpcKey = 'secret-rpc-key'

/** Number of methods that a chain was asked with this name. */
export function countOf(chain: TestChain, method: string): number {
  return chain.calls.filter((call) => call.method === method).length
}

/** An address with the case of one letter changed, which leaves letters of both cases: its checksum is wrong. */
export function misspelt(address: string): string {
  const swapped = (letter: string) => (letter === letter.toLowerCase() ? letter.toUpperCase() : letter.toLowerCase())
  const digits = address.slice(2)
  const others = [...digits].map((digit, at) => `0x${digits.slice(0, at)}${swapped(digit)}${digits.slice(at + 1)}`)
  return others.find((other) => other !== address && /[a-f]/.test(other) && /[A-F]/.test(other)) ?? ''
}

/** A contract that a chain has without code, and what it returns for everything. */
export interface TestPrecompile {
  readonly address: Hex
  readonly returns: string
}

/** Starts a chain, and stops it when the test ends. */
export async function startChain(chainId = 1, precompiles: readonly TestPrecompile[] = []): Promise<TestChain> {
  const evm = await createEVM({
    customPrecompiles: precompiles.map(({ address, returns }) => ({
      address,
      function: () => ({ executionGasUsed: 0n, returnValue: bytes(returns) }),
    })),
  })
  const calls: RpcCall[] = []
  let trouble: RpcTrouble | undefined
  // The class of addresses is one of a package that comes with the EVM.
  const { createdAddress } = await evm.runCall({ data: bytes('0x00') })
  const AddressClass = createdAddress?.constructor as new (bytes: Bytes) => NonNullable<EVMRunCallOpts['to']>
  const addressOf = (hex: string) => new AddressClass(bytes(hex))
  let deployed = 0

  /** One after another, because they share the state. */
  let last: Promise<unknown> = Promise.resolve()
  const inTurn = <T>(work: () => Promise<T>): Promise<T> => {
    const turn = last.then(work)
    last = turn.catch(() => {})
    return turn
  }

  const run = async ({ from, to, data, gas }: Record<string, string | undefined>) => {
    const caller = from === undefined ? undefined : addressOf(from)
    const { execResult } = await evm.runCall({
      ...(caller === undefined ? {} : { caller, origin: caller }),
      ...(to === undefined ? {} : { to: addressOf(to) }),
      data: bytes(data ?? '0x'),
      gasLimit: BigInt(gas ?? 30_000_000),
    })
    return execResult
  }

  /** As geth answers. */
  const ethCall = async (transaction: Record<string, string | undefined>): Promise<object> => {
    await evm.stateManager.checkpoint()
    const { returnValue, exceptionError } = await run(transaction).finally(() => evm.stateManager.revert())
    if (exceptionError === undefined) return { result: hex(returnValue) }
    const message: string = exceptionError.error
    if (message === 'revert') return { error: { code: 3, message: 'execution reverted', data: hex(returnValue) } }
    return { error: { code: -32_000, message } }
  }

  const answer = async ({ method, params }: RpcCall): Promise<object> => {
    switch (method) {
      case 'eth_chainId':
        return { result: `0x${chainId.toString(16)}` }
      case 'eth_getCode':
        return { result: hex(await evm.stateManager.getCode(addressOf(params[0]))) }
      case 'eth_call':
        return await ethCall(params[0])
      default:
        return { error: { code: -32_601, message: 'the method does not exist' } }
    }
  }

  const server = createServer(async (request, response) => {
    const call = JSON.parse(await text(request))
    calls.push({ method: call.method, params: call.params })
    if ((await trouble?.(call, response)) === true) return
    sendJson(response, { jsonrpc: '2.0', id: call.id, ...(await inTurn(() => answer(call))) })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => {
    server.closeAllConnections()
    server.close()
  })
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/${rpcKey}`,
    calls,
    async deploy(runtime, address = `0x${(0xc0de_0000 + deployed++).toString(16).padStart(40, 'a')}`) {
      await inTurn(() => evm.stateManager.putCode(addressOf(address), bytes(runtime)))
      return address.toLowerCase() as Hex
    },
    async transact(to, data) {
      const { exceptionError } = await inTurn(() => run({ to, data }))
      if (exceptionError !== undefined) throw new Error(exceptionError.error)
    },
    trouble(next) {
      trouble = next
    },
  }
}

/** Ends a response with JSON. */
export function sendJson(response: ServerResponse, json: unknown, status = 200): true {
  response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(json))
  return true
}

function bytes(text: string): Bytes {
  return new Uint8Array(Buffer.from(text.replace(/^0x/, ''), 'hex'))
}

function hex(data: Bytes): Hex {
  return `0x${Buffer.from(data).toString('hex')}`
}
