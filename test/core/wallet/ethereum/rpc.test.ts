import { once } from 'node:events'
import { createServer } from 'node:net'
import { beforeEach, describe, expect, test } from 'vitest'
import { ethereum } from '../../../../src/core/wallet/ethereum/ethereum.ts'
import { nativeVerifier } from '../../../../src/core/wallet/native.ts'
import { createCountersign } from '../../../../src/index.ts'
import { CountersignError } from '../../../../src/shared/errors.ts'
import { countOf, type RpcTrouble, rpcKey, sendJson, startChain, type TestChain } from '../../../support/evm.ts'
import { keptLog } from '../../../support/log-lines.ts'
import vectors from '../../../vectors/ethereum.json' with { type: 'json' }

const { contract } = vectors

let chain: TestChain
let address: string
beforeEach(async () => {
  chain = await startChain()
  address = await chain.deploy(contract.runtime)
})

const proofOf = (address: string) => ({
  publicKeyHex: '',
  signatureHex: contract.signature.slice(2),
  address,
  chainId: '1',
})

/** The failure of a check that has to fail. */
async function failureOf(adapter: ReturnType<typeof ethereum>): Promise<CountersignError> {
  try {
    const proven = await adapter.verify(contract.text, proofOf(address), nativeVerifier)
    throw new Error(`it was answered: ${JSON.stringify(proven)}`)
  } catch (error) {
    if (error instanceof CountersignError) return error
    throw error
  }
}

/** An address of the machine at which nobody listens. */
async function freeAddress(): Promise<string> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as { port: number }
  server.close()
  return `http://127.0.0.1:${port}/${rpcKey}`
}

const rpcError = (code: number, message: string, status = 200): RpcTrouble => {
  return ({ method }, response) =>
    method === 'eth_call' && sendJson(response, { jsonrpc: '2.0', id: 1, error: { code, message } }, status)
}
const result = (value: unknown): RpcTrouble => {
  return ({ method }, response) => method === 'eth_call' && sendJson(response, { jsonrpc: '2.0', id: 1, result: value })
}

/** What an RPC may do instead of answering, and what the log says of it. */
const outages: readonly (readonly [name: string, trouble: RpcTrouble, cause: string])[] = [
  ['HTTP 429', (_, response) => sendJson(response, { error: 'slow down' }, 429), 'eth_chainId: HTTP status 429'],
  ['HTTP 500', (_, response) => sendJson(response, {}, 500), 'eth_chainId: HTTP status 500'],
  ['HTTP 401', (_, response) => sendJson(response, `wrong key ${rpcKey}`, 401), 'eth_chainId: HTTP status 401'],
  [
    'a page in place of JSON',
    (_, response) => {
      response.writeHead(200, { 'content-type': 'text/html' }).end(`<a href="/${rpcKey}">`)
      return true
    },
    'eth_chainId: no usable answer',
  ],
  ['null in place of an object', (_, response) => sendJson(response, null), 'eth_chainId: no usable answer'],
  [
    'a connection that breaks off',
    (_, response) => {
      response.destroy()
      return true
    },
    'eth_chainId: UND_ERR_SOCKET',
  ],
  ['an internal error', rpcError(-32_603, 'internal error'), 'eth_call: JSON-RPC error -32603'],
  [
    'an internal error that speaks of a revert',
    rpcError(-32_603, 'execution reverted'),
    'eth_call: JSON-RPC error -32603',
  ],
  ['a limit on requests', rpcError(-32_005, `limit for ${rpcKey}`, 429), 'eth_call: JSON-RPC error -32005'],
  ["an error of the node's EVM", rpcError(-32_015, 'VM execution error.'), 'eth_call: JSON-RPC error -32015'],
  ['a block that it has not', rpcError(-32_000, 'header not found'), 'eth_call: JSON-RPC error -32000'],
  ['a method that it has not', rpcError(-32_601, 'no such method'), 'eth_call: JSON-RPC error -32601'],
  ['too little gas', rpcError(-32_000, 'out of gas'), 'the contract takes more gas or time than allowed'],
  ['the result null', result(null), 'eth_call: no bytes'],
  ['no result', result(undefined), 'eth_call: no bytes'],
  ['a number as the result', result(1), 'eth_call: no bytes'],
  ['half a byte as the result', result('0x1'), 'eth_call: no bytes'],
  [
    'no code, but null',
    ({ method }, response) => method === 'eth_getCode' && sendJson(response, { id: 1, result: null }),
    'eth_getCode: no bytes',
  ],
  [
    'an error in place of the code',
    ({ method }, response) =>
      method === 'eth_getCode' &&
      sendJson(response, { id: 1, error: { code: -32_000, message: 'execution reverted' } }),
    'eth_getCode: JSON-RPC error -32000',
  ],
]

describe('an RPC that answers with', () => {
  test.each(outages)('%s is away, which is never a wrong signature', async (_, trouble, cause) => {
    const adapter = ethereum({ 1: chain.url })
    chain.trouble(trouble)
    const failure = await failureOf(adapter)
    expect(failure).toMatchObject({
      reason: 'EVM_RPC_UNAVAILABLE',
      httpStatus: 503,
      metadata: { chain_id: '1' },
      cause: { message: cause },
    })
    expect(failure.retryAfterMs).toBeGreaterThan(0)
    // What the log and the caller could be shown.
    const shown = [failure, failure.cause as Error].map((error) => `${error.message} ${error.stack} ${error.cause}`)
    expect(shown.join()).not.toContain(rpcKey)
    expect(shown.join()).not.toContain('127.0.0.1')
    chain.trouble()
    expect(await adapter.verify(contract.text, proofOf(address), nativeVerifier)).toMatchObject({
      subject: `eip155:1:${address}`,
    })
  })

  test.each([
    ['a revert', 3, 'execution reverted'],
    ['a revert without data', -32_000, 'execution reverted'],
    ['a revert in other words', -32_000, 'VM Exception while processing transaction: revert'],
    ['an invalid opcode', -32_000, 'invalid opcode: INVALID'],
  ])('%s says that the signature is wrong', async (_, code, message) => {
    chain.trouble(rpcError(code, message))
    const adapter = ethereum({ 1: chain.url })
    expect(await adapter.verify(contract.text, proofOf(address), nativeVerifier)).toBeUndefined()
  })
})

test('an RPC that does not listen is away', async () => {
  const failure = await failureOf(ethereum({ 1: await freeAddress() }))
  expect(failure).toMatchObject({ reason: 'EVM_RPC_UNAVAILABLE', cause: { message: 'eth_chainId: ECONNREFUSED' } })
})

test('an RPC that begins an answer and says nothing more is away after five seconds', async () => {
  chain.trouble(({ method }, response) => {
    if (method === 'eth_call') response.writeHead(200, { 'content-type': 'application/json' }).write('{')
    return method === 'eth_call'
  })
  const failure = await failureOf(ethereum({ 1: chain.url }))
  expect(failure).toMatchObject({
    reason: 'EVM_RPC_UNAVAILABLE',
    cause: { message: 'the contract takes more gas or time than allowed' },
  })
})

test('an RPC that sends more than 10 MiB is away', async () => {
  const mebibyte = Buffer.alloc(2 ** 20, ' ')
  let written = 0
  chain.trouble(({ method }, response) => {
    if (method !== 'eth_call') return false
    const write = (): void => {
      if (written++ < 64) response.write(mebibyte, write)
    }
    write()
    return true
  })
  const failure = await failureOf(ethereum({ 1: chain.url }))
  expect(failure).toMatchObject({ cause: { message: 'eth_call: more than 10485760 bytes' } })
  expect(written).toBeLessThan(64)
})

test('credentials in the address of an RPC are sent as a header', async () => {
  const seen: unknown[] = []
  chain.trouble((_call, response) => {
    seen.push(response.req.url, response.req.headers.authorization)
    return false
  })
  const url = new URL(chain.url)
  Object.assign(url, { username: 'operator', password: 'a:b@c' })
  expect(await ethereum({ 1: url.href }).verify(contract.text, proofOf(address), nativeVerifier)).toBeDefined()
  expect(new Set(seen)).toEqual(new Set([`/${rpcKey}`, `Basic ${btoa('operator:a:b@c')}`]))
})

test.each(['eth_chainId', 'eth_getCode', 'eth_call'])(
  'an RPC that sends elsewhere for %s is away, and no other server is asked',
  async (sent) => {
    const other = await startChain()
    await other.deploy(contract.runtime, address)
    chain.trouble(({ method }, response) => {
      if (method === sent) response.writeHead(307, { location: other.url }).end()
      return method === sent
    })
    const failure = await failureOf(ethereum({ 1: chain.url }))
    expect(failure).toMatchObject({
      reason: 'EVM_RPC_UNAVAILABLE',
      cause: { message: `${sent}: HTTP status 307` },
    })
    expect(other.calls).toEqual([])
  },
)

test('an RPC of another chain is never asked about a wallet', async () => {
  const other = await startChain(5)
  await other.deploy(contract.runtime, address)
  const failure = await failureOf(ethereum({ 1: other.url }))
  expect(failure.reason).toBe('EVM_RPC_UNAVAILABLE')
  expect((failure.cause as Error).message).toContain('serves chain 5')
  expect(other.calls.map(({ method }) => method)).toEqual(['eth_chainId'])
})

describe('the start of a service', () => {
  const start = async (evmRpc: Record<string, string>, adapters: string[] = ['ethereum']) => {
    const { logger, lines } = keptLog()
    const service = await createCountersign({ adapters, evmRpc, logger, store: 'sqlite::memory:' })
    await service.close(0)
    return lines
  }

  test('asks each RPC for its chain, and says nothing if it is the right one', async () => {
    const base = await startChain(8453)
    expect(await start({ 1: chain.url, 8453: base.url })).toEqual([])
    expect([...chain.calls, ...base.calls].map(({ method }) => method)).toEqual(['eth_chainId', 'eth_chainId'])
  })

  test('stops if an RPC serves another chain, with a line that shows its host only', async () => {
    const failure = await start({ 10: chain.url }).catch((error: unknown) => error)
    expect(failure).toBeInstanceOf(TypeError)
    const { message } = failure as TypeError
    expect(message).toBe(
      `evmRpc (COUNTERSIGN_EVM_RPC) has a server for chain 10, at ${new URL(chain.url).host}, that serves chain 1`,
    )
  })

  test('warns of an RPC that is away, which is checked before its first use', async () => {
    const lines = await start({ 1: await freeAddress() })
    expect(lines).toMatchObject([{ level: 'warn', fields: { chainId: '1', cause: 'eth_chainId: ECONNREFUSED' } }])
    expect(JSON.stringify(lines)).not.toContain(rpcKey)
  })

  test('warns if there are RPCs and no adapter that would ask them', async () => {
    expect(await start({ 1: chain.url }, ['nimiq'])).toMatchObject([
      { level: 'warn', text: expect.stringContaining('evmRpc is set') },
    ])
    expect(chain.calls).toEqual([])
  })
})

describe('what bounds an adapter’s questions', () => {
  test('is asked once for a proof, and before any RPC', async () => {
    const adapter = ethereum({ 1: chain.url })
    let asked = 0
    const remote = {
      ask: async <Answer>(ask: () => Promise<Answer>) => {
        asked++
        return await ask()
      },
    }
    await adapter.verify(contract.text, proofOf(address), nativeVerifier, remote)
    expect(asked).toBe(1)
    const refusing = { ask: () => Promise.reject(new CountersignError('RATE_LIMITED', 'enough')) }
    const before = chain.calls.length
    const refused = adapter.verify(contract.text, proofOf(address), nativeVerifier, refusing) as Promise<unknown>
    await expect(refused).rejects.toMatchObject({ reason: 'RATE_LIMITED' })
    expect(chain.calls).toHaveLength(before)
    expect(countOf(chain, 'eth_chainId')).toBe(1)
  })

  test('hears of an outage, and of a contract that takes too much gas or time as of an answer', async () => {
    const adapter = ethereum({ 1: chain.url })
    const heard: string[] = []
    const remote = {
      ask: async <Answer>(ask: () => Promise<Answer>) => {
        const answer = ask()
        heard.push(
          await answer.then(
            () => 'answered',
            () => 'failed',
          ),
        )
        return await answer
      },
    }
    const troubles: RpcTrouble[] = [
      rpcError(-32_000, 'header not found'),
      rpcError(-32_000, 'out of gas'),
      rpcError(-32_000, 'execution aborted (timeout = 5s)'),
      rpcError(-32_002, 'request timed out'),
      // It is still at it when the time limit of the whole check is over.
      ({ method }) => method === 'eth_call',
    ]
    for (const trouble of troubles) {
      chain.trouble(trouble)
      const checked = adapter.verify(contract.text, proofOf(address), nativeVerifier, remote) as Promise<unknown>
      await expect(checked).rejects.toMatchObject({ reason: 'EVM_RPC_UNAVAILABLE' })
    }
    expect(heard).toEqual(['failed', 'answered', 'answered', 'answered', 'answered'])
  })
})
