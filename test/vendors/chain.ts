import { readFileSync } from 'node:fs'
import { pathToFileURL } from 'node:url'
import {
  type Abi,
  type Address,
  createTestClient,
  getAddress,
  type Hex,
  type HttpTransport,
  http,
  type PublicActions,
  parseEther,
  publicActions,
  type TestClient,
  type WalletActions,
  walletActions,
} from 'viem'
import { hardhat } from 'viem/chains'
import { readFromRoot } from '../support/repository.ts'

/** Packages of the chain, the contracts and their compiler. Hardhat's own way to a compiler needs another server. */
export const chainPackages = {
  '@account-abstraction/contracts': '0.8.0',
  '@openzeppelin/contracts': '5.7.0',
  '@safe-global/safe-contracts': '1.4.1',
  hardhat: '3.18.0',
  solady: '0.1.26',
  solc: '0.8.37',
} as const

/** What contract-wallets.test.ts shows, as a row of the table in docs/wallets.md. */
export const chainRow: readonly string[] = [
  'contract wallets, on Hardhat',
  Object.entries(chainPackages)
    .filter(([name]) => name !== 'solc')
    .map(([name, version]) => `\`${name}@${version}\``)
    .join(', '),
  'Safe, EIP-6492, EIP-7702, ERC-7739: sign in and approve; an upgrade, a removed owner or a reorganisation ends no ' +
    'session or approval',
]

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
  /** Calls a contract in a transaction, by default from the payer. */
  transact(to: Address, data: Hex, from?: Address): Promise<void>
  stop(): Promise<void>
}

/** Starts a chain. */
export async function startHardhat(load: NodeJS.Require): Promise<Chain> {
  const { createHardhatRuntimeEnvironment } = await import(pathToFileURL(load.resolve('hardhat/hre')).href)
  const { network } = await createHardhatRuntimeEnvironment({
    networks: { chain: { type: 'edr-simulated', chainType: 'l1', chainId: hardhat.id, hardfork: 'prague' } },
  })
  const server = await network.createServer({ network: 'chain' }, '127.0.0.1', 0)
  const { address, port } = await server.listen()
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
      return getAddress(contractAddress)
    },
    async transact(to, data, from = payer) {
      if (from !== payer) {
        await client.impersonateAccount({ address: from })
        await client.setBalance({ address: from, value: parseEther('1') })
      }
      await mined(await client.sendTransaction({ account: from, to, data }))
    },
    stop: () => server.close(),
  }
}

/** Compiles a Solidity file of this folder, which imports files of packages. Resolves with its contracts by name. */
export async function compile(load: NodeJS.Require, file: string): Promise<Readonly<Record<string, Artifact>>> {
  const settings = {
    evmVersion: 'prague',
    optimizer: { enabled: true },
    outputSelection: { '*': { '*': ['abi', 'evm.bytecode.object'] } },
  }
  const input = {
    language: 'Solidity',
    sources: { [file]: { content: await readFromRoot(`test/vendors/${file}`) } },
    settings,
  }
  const read = (path: string) => ({ contents: readFileSync(load.resolve(path), 'utf8') })
  const { errors = [], contracts } = JSON.parse(load('solc').compile(JSON.stringify(input), { import: read }))
  const faults = errors.filter(({ severity }: { severity: string }) => severity === 'error')
  if (faults.length > 0) throw new Error(faults[0].formattedMessage)
  // biome-ignore lint/suspicious/noExplicitAny: the compiler's own shape.
  const entries = Object.entries<any>(contracts[file])
  return Object.fromEntries(
    entries.map(([name, { abi, evm }]) => [name, { abi, bytecode: `0x${evm.bytecode.object}` }]),
  )
}
