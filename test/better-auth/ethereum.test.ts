import type { Hex } from 'viem'
import { generatePrivateKey, privateKeyToAccount } from 'viem/accounts'
import { expect, test } from 'vitest'
import { sendJson, startChain } from '../support/evm.ts'
import vectors from '../vectors/ethereum.json' with { type: 'json' }
import { bearerOf, call } from './calls.ts'
import { type Auth, makeAuth } from './support.ts'

const owner = privateKeyToAccount(vectors.contract.ownerPrivateKey as Hex)

async function signIn(auth: Auth, address: string, signer = owner) {
  const wallet = { adapterId: 'ethereum', address, chainId: '1' }
  const { json } = await call(auth, '/wallet/nonce', wallet)
  const signatureHex = (await signer.signMessage({ message: json.message })).slice(2)
  return await call(auth, '/wallet/verify', { nonceId: json.nonceId, ...wallet, publicKeyHex: '', signatureHex })
}

test('wallets of Ethereum are accounts by their address, and contract wallets by their chain and address', async () => {
  const chain = await startChain()
  const contract = await chain.deploy(vectors.contract.runtime)
  const auth = await makeAuth({ wallet: { adapters: ['ethereum'], evmRpc: { 1: chain.url } } })
  const account = privateKeyToAccount(generatePrivateKey())
  const { internalAdapter } = await auth.$context
  for (const [address, signer, accountId] of [
    [account.address, account, account.address.toLowerCase()],
    [contract, owner, `eip155:1:${contract}`],
  ] as const) {
    const answer = await signIn(auth, address, signer)
    expect(answer.json).toMatchObject({ ok: true })
    expect(await internalAdapter.findAccounts(answer.json.session.userId)).toMatchObject([
      { providerId: 'ethereum', accountId },
    ])
    expect((await call(auth, '/get-session', undefined, bearerOf(answer))).json.user.id).toBe(
      answer.json.session.userId,
    )
  }
})

test('each plugin checks its RPCs at the start, which one of another chain stops', async () => {
  const [chain, other] = [await startChain(), await startChain(5)]
  const right = { adapters: ['ethereum'], evmRpc: { 1: chain.url } }
  await (await makeAuth({ wallet: right, orders: right })).$context
  expect(chain.calls.map(({ method }) => method)).toEqual(['eth_chainId', 'eth_chainId'])
  const wrong = { adapters: ['ethereum'], evmRpc: { 1: other.url } }
  for (const options of [{ wallet: wrong }, { orders: wrong }]) {
    const { $context } = await makeAuth(options)
    await expect($context).rejects.toThrow(
      /^evmRpc \(COUNTERSIGN_EVM_RPC\) has a server for chain 1, at .* that serves chain 5$/,
    )
  }
})

test('an RPC that is away at the start is a warning, and is checked before its first use', async () => {
  const other = await startChain(5)
  const address = await other.deploy(vectors.contract.runtime)
  other.trouble(({ method }, response) => method === 'eth_chainId' && sendJson(response, {}, 503))
  const lines: unknown[] = []
  const logger = { level: 'warn' as const, log: (...line: unknown[]) => lines.push(line) }
  const evmRpc = { 1: other.url }
  const auth = await makeAuth({ wallet: { adapters: ['ethereum'], evmRpc }, orders: { evmRpc }, auth: { logger } })
  await auth.$context
  const away = { adapter: 'ethereum', chainId: '1', cause: 'eth_chainId: HTTP status 503' }
  expect(lines).toEqual([
    ['warn', 'an RPC does not answer; it will be checked before its first use', away],
    ['warn', expect.stringMatching(/^evmRpc is set, and the adapter ethereum/)],
  ])
  other.trouble()
  const { status, json } = await signIn(auth, address)
  expect([status, json.code]).toEqual([503, 'EVM_RPC_UNAVAILABLE'])
  expect(new Set(other.calls.map(({ method }) => method))).toEqual(new Set(['eth_chainId']))
})
