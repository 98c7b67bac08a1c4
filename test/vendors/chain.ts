import { pathToFileURL } from 'node:url'
import {
  type Abi,
  type Address,
  createTestClient,
  type Hex,
  type HttpTransport,
  http,
  type PublicActions,
  publicActions,
  type TestClient,
  type WalletActions,
  walletActions,
} from 'viem'
import { hardhat } from 'viem/chains'
import { onTestFinished } from 'vitest'

/** Packages of the chain, the contracts and their compiler. Hardhat's own way to a compiler needs another server. */
export const chainPackages = {
  '@account-abstraction/contracts': '0.8.0',
  '@openzeppelin/contracts': '5.7.0',
  '@safe-global/safe-contracts': '1.4.1',
  hardhat: '3.18.0',
  solady: '0.1.26',
  solc: '0.8.37',
} as const

/** A contract that can be deployed. */
export interface Artifact {
  readonly abi: Abi
  readonly bytecode: Hex
}

/** What a chain is asked to do: viem's actions of tests, readers and wallets. */
export type ChainClient = TestClient<'hardhat', HttpTransport, typeof hardhat> &
  PublicActions<HttpTransport, typeof hardhat> &
  WalletActions<typeof hardhat>

function clientOf(url: string): ChainClient {
  return createTestClient({ mode: 'hardhat', chain: hardhat, transport: http(url), pollingInterval: 20 })
    .extend(publicActions)
    .extend(walletActions)
}

/** Hardhat's chain in this process. */
export interface Chain {
  readonly id: number
  /** Of its JSON-RPC server, on loopback. */
  readonly url: string
  readonly client: ChainClient
  /** An account with ether, whose key the chain has. */
  readonly payer: Address
  /** Deploys a contract. Resolves with its address. */
  deploy(artifact: Artifact, args?: readonly unknown[]): Promise<Address>
  /** Calls a contract in a transaction. */
  transact(to: Address, data: Hex): Promise<void>
}

/** Starts a chain, and stops it when the test ends. */
export async function startHardhat(load: NodeJS.Require): Promise<Chain> {
  const { createHardhatRuntimeEnvironment } = await import(pathToFileURL(load.resolve('hardhat/hre')).href)
  const { network } = await createHardhatRuntimeEnvironment({
    networks: { chain: { type: 'edr-simulated', chainType: 'l1', chainId: hardhat.id, hardfork: 'prague' } },
  })
  const server = await network.createServer({ network: 'chain' }, '127.0.0.1', 0)
  const { address, port } = await server.listen()
  onTestFinished(() => server.close())
  const url = `http://${address}:${port}`
  const client = clientOf(url)
  const [payer] = await client.getAddresses()
  if (payer === undefined) throw new Error('the chain has no accounts')
  const mined = async (hash: Hex) => {
    const receipt = await client.waitForTransactionReceipt({ hash })
    if (receipt.status !== 'success') throw new Error(`the transaction ${hash} failed`)
    return receipt
  }
  return {
    id: hardhat.id,
    url,
    client,
    payer,
    async deploy({ abi, bytecode }, args = []) {
      const { contractAddress } = await mined(await client.deployContract({ abi, bytecode, args, account: payer }))
      if (typeof contractAddress !== 'string') throw new Error('no contract was deployed')
      return contractAddress
    },
    async transact(to, data) {
      await mined(await client.sendTransaction({ account: payer, to, data }))
    },
  }
}
