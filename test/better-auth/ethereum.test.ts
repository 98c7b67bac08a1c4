import type { Hex } from 'viem'
import { generatePrivateKey, privateKeyToAccount } from 'viem/accounts'
import { expect, test } from 'vitest'
import { startChain } from '../support/evm.ts'
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

test('an RPC is checked at its first use, because a plugin is made without waiting for anything', async () => {
  const other = await startChain(5)
  const address = await other.deploy(vectors.contract.runtime)
  const auth = await makeAuth({ wallet: { adapters: ['ethereum'], evmRpc: { 1: other.url } } })
  expect(other.calls).toEqual([])
  const { status, json } = await signIn(auth, address)
  expect([status, json.code]).toEqual([503, 'EVM_RPC_UNAVAILABLE'])
  expect(other.calls.map(({ method }) => method)).toEqual(['eth_chainId'])
})
