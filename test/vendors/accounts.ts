import { type Address, concat, encodeFunctionData, type Hex, hashMessage, zeroAddress } from 'viem'
import { generatePrivateKey, type PrivateKeyAccount, privateKeyToAccount } from 'viem/accounts'
import type { Wallet } from '../../src/browser/client/index.ts'
import type { Artifact, Chain } from './chain.ts'
import { providerOf } from './vendor-wallet.ts'

/** An account of a contract, as a wallet has it. */
export interface ContractAccount {
  readonly address: Address
  readonly wallet: Wallet
}

const newKey = (): PrivateKeyAccount => privateKeyToAccount(generatePrivateKey())

/** Loads a contract of Safe's package. */
function safeArtifact(load: NodeJS.Require, path: string): Artifact {
  const name = path.replace(/.*\//, '')
  return load(`@safe-global/safe-contracts/build/artifacts/contracts/${path}.sol/${name}.json`)
}

/** A Safe of two owners, both of whom have to sign. */
export interface Safe extends ContractAccount {
  readonly owners: readonly PrivateKeyAccount[]
  /** A wallet of the Safe in which only these sign. */
  signedBy(owners: readonly PrivateKeyAccount[]): Wallet
}

export async function deploySafe(load: NodeJS.Require, chain: Chain): Promise<Safe> {
  const safe = safeArtifact(load, 'Safe')
  const proxyFactory = safeArtifact(load, 'proxies/SafeProxyFactory')
  const singleton = await chain.deploy(safe)
  const handler = await chain.deploy(safeArtifact(load, 'handler/CompatibilityFallbackHandler'))
  const factory = await chain.deploy(proxyFactory)
  const owners = [newKey(), newKey()]
  const addresses = owners.map((owner) => owner.address)
  const setUp = [addresses, 2n, zeroAddress, '0x', handler, zeroAddress, 0n, zeroAddress]
  const initializer = encodeFunctionData({ abi: safe.abi, functionName: 'setup', args: setUp })
  const call = { abi: proxyFactory.abi, functionName: 'createProxyWithNonce', args: [singleton, initializer, 0n] }
  const { result } = await chain.client.simulateContract({ address: factory, ...call })
  await chain.transact(factory, encodeFunctionData(call))
  const address = result as Address
  const signedBy = (signers: readonly PrivateKeyAccount[]): Wallet =>
    providerOf(address, (text) => safeSignature(chain, address, signers, hashMessage(text)), chain.id)
  return { address, owners, wallet: signedBy(owners), signedBy }
}

/** What owners sign for their Safe, one behind the other in the order of their addresses. */
async function safeSignature(
  { id: chainId }: Chain,
  verifyingContract: Address,
  owners: readonly PrivateKeyAccount[],
  message: Hex,
): Promise<Hex> {
  const sorted = owners.toSorted((a, b) => (a.address.toLowerCase() < b.address.toLowerCase() ? -1 : 1))
  const typed = {
    domain: { chainId, verifyingContract },
    types: { SafeMessage: [{ name: 'message', type: 'bytes' }] },
    primaryType: 'SafeMessage',
    message: { message },
  } as const
  return concat(await Promise.all(sorted.map((owner) => owner.signTypedData(typed))))
}
