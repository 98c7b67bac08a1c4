import { createHash } from 'node:crypto'
import { p256 } from '@noble/curves/nist.js'
import {
  type Address,
  bytesToHex,
  concat,
  encodeAbiParameters,
  encodeFunctionData,
  type Hex,
  hashMessage,
  hashTypedData,
  pad,
  parseAbiParameters,
  serializeErc6492Signature,
  slice,
  type TypedDataDomain,
  toPrefixedMessage,
  zeroAddress,
} from 'viem'
import { generatePrivateKey, type PrivateKeyAccount, privateKeyToAccount } from 'viem/accounts'
import type { Wallet } from '../../src/browser/client/index.ts'
import type { Artifact, Chain } from './chain.ts'
import { providerOf } from './vendor-wallet.ts'

/** What accounts are made of. */
export interface Parts {
  readonly chain: Chain
  /** Contracts of accounts.sol. */
  readonly compiled: Readonly<Record<string, Artifact>>
  readonly load: NodeJS.Require
}

/** An account on a chain. */
export interface ContractAccount {
  readonly address: Address
  readonly wallet: Wallet
  /** Its address in sessions, links and proofs. */
  readonly identity: string
  /** Wallets of the account whose signatures the service has to refuse, by what is wrong with them. */
  readonly wrong: Readonly<Record<string, Wallet>>
}

type Sign = (text: string) => Promise<Hex>

const newKey = (): PrivateKeyAccount => privateKeyToAccount(generatePrivateKey())

/** A contract's account, the identity of its chain. */
function accountOf(chain: Chain, address: Address, sign: Sign, wrong: Readonly<Record<string, Sign>>): ContractAccount {
  const walletOf = (one: Sign): Wallet => providerOf(address, one, chain.id)
  return {
    address,
    wallet: walletOf(sign),
    identity: `eip155:${chain.id}:${address}`,
    wrong: Object.fromEntries(Object.entries(wrong).map(([what, one]) => [what, walletOf(one)])),
  }
}

const signedBy =
  (key: PrivateKeyAccount): Sign =>
  (message) =>
    key.signMessage({ message })

/** A contract of Safe's package. */
function safeArtifact(load: NodeJS.Require, path: string): Artifact {
  const name = path.replace(/.*\//, '')
  return load(`@safe-global/safe-contracts/build/artifacts/contracts/${path}.sol/${name}.json`)
}

/** A Safe of two owners, both of whom have to sign. */
export interface Safe extends ContractAccount {
  /** In the order of their signatures: by address. */
  readonly owners: readonly [PrivateKeyAccount, PrivateKeyAccount]
  /** A wallet of the Safe in which only these sign. */
  signedBy(...owners: readonly PrivateKeyAccount[]): Wallet
  /** Deploys it. */
  deploy(): Promise<void>
  /** Takes the first owner out; the second one then signs alone. */
  removeFirst(): Promise<void>
}

/** A Safe that is not deployed. Its signatures have the wrapper of EIP-6492 if `isWrapped`. */
export async function makeSafe({ load, chain }: Parts, isWrapped: boolean): Promise<Safe> {
  const { abi } = safeArtifact(load, 'Safe')
  const proxyFactory = safeArtifact(load, 'proxies/SafeProxyFactory')
  const singleton = await chain.deploy(safeArtifact(load, 'Safe'))
  const handler = await chain.deploy(safeArtifact(load, 'handler/CompatibilityFallbackHandler'))
  const factory = await chain.deploy(proxyFactory)
  const [one, other] = [newKey(), newKey()]
  const owners = isBefore(one, other) ? ([one, other] as const) : ([other, one] as const)
  const creation = (signers: readonly PrivateKeyAccount[]) => {
    const addresses = signers.map((owner) => owner.address)
    const args = [addresses, 2n, zeroAddress, '0x', handler, zeroAddress, 0n, zeroAddress]
    const initializer = encodeFunctionData({ abi, functionName: 'setup', args })
    return { abi: proxyFactory.abi, functionName: 'createProxyWithNonce', args: [singleton, initializer, 0n] }
  }
  const { result } = await chain.client.simulateContract({ address: factory, ...creation(owners) })
  const address = result as Address
  const data = encodeFunctionData(creation(owners))
  const signatures =
    (...signers: readonly PrivateKeyAccount[]): Sign =>
    (text) =>
      safeSignature(chain, address, signers, hashMessage(text))
  const wrapped =
    (sign: Sign, factoryData = data): Sign =>
    async (text) =>
      serializeErc6492Signature({ address: factory, data: factoryData, signature: await sign(text) })
  const own = isWrapped ? wrapped : (sign: Sign) => sign
  const others = encodeFunctionData(creation([newKey(), newKey()]))
  const account = accountOf(chain, address, own(signatures(...owners)), {
    'one signature': own(signatures(owners[0])),
    'one signature twice': own(signatures(owners[1], owners[1])),
    ...(isWrapped
      ? {
          'no wrapper': signatures(...owners),
          "another Safe's wrapper": wrapped(signatures(...owners), others),
        }
      : {}),
  })
  return {
    ...account,
    owners,
    signedBy: (...signers) => providerOf(address, own(signatures(...signers)), chain.id),
    deploy: () => chain.transact(factory, data),
    removeFirst() {
      // The contract's list of owners begins with this one.
      const before = pad('0x1', { size: 20 })
      const data = encodeFunctionData({ abi, functionName: 'removeOwner', args: [before, owners[0].address, 1n] })
      return chain.transact(address, data, address)
    },
  }
}

function isBefore(one: PrivateKeyAccount, other: PrivateKeyAccount): boolean {
  return one.address.toLowerCase() < other.address.toLowerCase()
}

/** What owners sign for their Safe, one behind the other. */
async function safeSignature(
  { id: chainId }: Chain,
  verifyingContract: Address,
  owners: readonly PrivateKeyAccount[],
  message: Hex,
): Promise<Hex> {
  const typed = {
    domain: { chainId, verifyingContract },
    types: { SafeMessage: [{ name: 'message', type: 'bytes' }] },
    primaryType: 'SafeMessage',
    message: { message },
  } as const
  return concat(await Promise.all(owners.map((owner) => owner.signTypedData(typed))))
}

/** Signs as ERC-7739 says of texts: for the account's own domain. */
function nested(chain: Chain, key: PrivateKeyAccount, address: Address, name: string, version = '1'): Sign {
  return (text) => key.signTypedData(nestedText(text, { name, version, chainId: chain.id, verifyingContract: address }))
}

function nestedText(text: string, domain: TypedDataDomain) {
  return {
    domain,
    types: { PersonalSign: [{ name: 'prefixed', type: 'bytes' }] },
    primaryType: 'PersonalSign',
    message: { prefixed: toPrefixedMessage(text) },
  } as const
}

/** An account of Solady, whose owner is a key. */
export interface SoladyAccount extends ContractAccount {
  /** A wallet of it that signs without the wrapper, for its domain of this version. */
  unwrapped(version?: string): Wallet
  deploy(): Promise<void>
  /** Upgrades it to the next version of its domain. */
  upgrade(): Promise<void>
}

/** An account of Solady for ERC-4337 that is not deployed. */
export async function makeSolady({ chain, compiled }: Parts): Promise<SoladyAccount> {
  const { SoladyAccount, SoladyAccountNext, SoladyFactory } = compiled as Record<string, Artifact>
  if (!SoladyAccount || !SoladyAccountNext || !SoladyFactory) throw new Error('accounts.sol has other contracts')
  const owner = newKey()
  const factory = await chain.deploy(SoladyFactory, [await chain.deploy(SoladyAccount)])
  const create = (salt: Hex) => ({ abi: SoladyFactory.abi, functionName: 'createAccount', args: [salt] })
  // The owner is in the upper bytes.
  const salt = pad(owner.address, { dir: 'right' })
  const { result } = await chain.client.simulateContract({ address: factory, ...create(salt) })
  const address = result as Address
  const data = encodeFunctionData(create(salt))
  const signFor = (version?: string) => nested(chain, owner, address, 'Solady', version)
  const wrapped =
    (sign: Sign, factoryData = data): Sign =>
    async (text) =>
      serializeErc6492Signature({ address: factory, data: factoryData, signature: await sign(text) })
  const account = accountOf(chain, address, wrapped(signFor()), {
    'no wrapper': signFor(),
    "another account's wrapper": wrapped(
      signFor(),
      encodeFunctionData(create(pad(newKey().address, { dir: 'right' }))),
    ),
    "another key's signature": wrapped(nested(chain, newKey(), address, 'Solady')),
    "its owner's signature over the bare text": wrapped(signedBy(owner)),
  })
  return {
    ...account,
    unwrapped: (version) => providerOf(address, signFor(version), chain.id),
    deploy: () => chain.transact(factory, data),
    async upgrade() {
      const args = [await chain.deploy(SoladyAccountNext), '0x']
      const upgrade = encodeFunctionData({ abi: SoladyAccount.abi, functionName: 'upgradeToAndCall', args })
      await chain.transact(address, upgrade, owner.address)
    },
  }
}

/** Signs as a browser does with a passkey for a page, in the form that OpenZeppelin's contracts take. */
function passkeySignature(hash: Hex, secretKey: Uint8Array): Hex {
  const challenge = Buffer.from(hash.slice(2), 'hex').toString('base64url')
  const client = JSON.stringify({ type: 'webauthn.get', challenge, origin: 'https://wallet.example' })
  // The hash of the domain; the user was there and was verified; a counter.
  const authenticator = Buffer.concat([sha256('wallet.example'), Buffer.from([0x05, 0, 0, 0, 1])])
  const signed = Buffer.concat([authenticator, sha256(client)])
  const signature = bytesToHex(p256.sign(signed, secretKey, { lowS: true }))
  return encodeAbiParameters(parseAbiParameters('bytes32, bytes32, uint256, uint256, bytes, string'), [
    slice(signature, 0, 32),
    slice(signature, 32),
    BigInt(client.indexOf('"challenge"')),
    BigInt(client.indexOf('"type"')),
    bytesToHex(authenticator),
    client,
  ])
}

function sha256(data: string): Buffer {
  return createHash('sha256').update(data).digest()
}

/** Delegates a key's account to a contract, by EIP-7702. */
async function delegate({ client, payer }: Chain, key: PrivateKeyAccount, contract: Address, data: Hex): Promise<void> {
  const authorization = await client.signAuthorization({ account: key, contractAddress: contract, executor: payer })
  const hash = await client.sendTransaction({
    account: payer,
    to: key.address,
    data,
    authorizationList: [authorization],
  })
  await client.waitForTransactionReceipt({ hash })
  // The zero address takes a delegation back.
  const code = contract === zeroAddress ? undefined : concat(['0xef0100', contract]).toLowerCase()
  if ((await client.getCode({ address: key.address })) !== code) throw new Error('the account was not delegated')
}

/** A key's account, whose code another key decides for. */
export interface DelegatedAccount extends ContractAccount {
  /** A wallet in which its own key signs. */
  readonly keyed: Wallet
  /** Takes the delegation back. */
  undelegate(): Promise<void>
}

/** A key's account that is delegated to Solady's contract. */
export async function makeDelegated({ chain, compiled }: Parts): Promise<DelegatedAccount> {
  const { SoladyAccount } = compiled
  if (SoladyAccount === undefined) throw new Error('accounts.sol has other contracts')
  const [key, owner] = [newKey(), newKey()]
  const data = encodeFunctionData({ abi: SoladyAccount.abi, functionName: 'initialize', args: [owner.address] })
  await delegate(chain, key, await chain.deploy(SoladyAccount), data)
  const sign = (signer: PrivateKeyAccount) => nested(chain, signer, key.address, 'Solady')
  const account = accountOf(chain, key.address, sign(owner), {
    "another key's signature": sign(newKey()),
    "its own key's signature in the owner's place": sign(key),
  })
  return {
    ...account,
    keyed: providerOf(key.address, signedBy(key), chain.id),
    undelegate: () => delegate(chain, key, zeroAddress, '0x'),
  }
}

export interface AccountKind {
  readonly name: string
  /** What a sign-in comes to at a service that has no RPC. */
  readonly withoutRpc: 'no error' | 'CONTRACT_WALLET_NEEDS_RPC' | 'SIGNATURE_INVALID'
  open(parts: Parts): Promise<ContractAccount>
}

/** Kinds of accounts, each in the state in which it signs in. */
export const kinds: readonly AccountKind[] = [
  {
    name: 'Safe of two owners',
    withoutRpc: 'CONTRACT_WALLET_NEEDS_RPC',
    async open(parts) {
      const safe = await makeSafe(parts, false)
      await safe.deploy()
      return safe
    },
  },
  {
    name: 'Safe of two owners that is not deployed',
    withoutRpc: 'CONTRACT_WALLET_NEEDS_RPC',
    open: (parts) => makeSafe(parts, true),
  },
  {
    name: 'ERC-4337 account that is not deployed',
    withoutRpc: 'CONTRACT_WALLET_NEEDS_RPC',
    open: makeSolady,
  },
  {
    name: 'account with EIP-7702 whose key signs',
    withoutRpc: 'no error',
    async open({ load, chain }) {
      const key = newKey()
      const contract = await chain.deploy(load('@account-abstraction/contracts/artifacts/Simple7702Account.json'))
      await delegate(chain, key, contract, '0x')
      const stranger = { "another key's signature": signedBy(newKey()) }
      return { ...accountOf(chain, key.address, signedBy(key), stranger), identity: key.address }
    },
  },
  {
    name: 'account with EIP-7702 whose code decides',
    // The signature is as long as a key's.
    withoutRpc: 'SIGNATURE_INVALID',
    open: makeDelegated,
  },
  {
    name: 'account with ERC-7739',
    // The signature is as long as a key's.
    withoutRpc: 'SIGNATURE_INVALID',
    async open({ chain, compiled }) {
      const { OpenZeppelinAccount } = compiled
      if (OpenZeppelinAccount === undefined) throw new Error('accounts.sol has other contracts')
      const owner = newKey()
      const [address, other] = [
        await chain.deploy(OpenZeppelinAccount, [owner.address]),
        await chain.deploy(OpenZeppelinAccount, [owner.address]),
      ]
      return accountOf(chain, address, nested(chain, owner, address, 'OpenZeppelin'), {
        "another key's signature": nested(chain, newKey(), address, 'OpenZeppelin'),
        "its owner's signature for another account": nested(chain, owner, other, 'OpenZeppelin'),
        "its owner's signature over the bare text": signedBy(owner),
      })
    },
  },
  {
    name: 'account with ERC-7739 and a passkey',
    withoutRpc: 'CONTRACT_WALLET_NEEDS_RPC',
    async open({ chain, compiled }) {
      const { PasskeyAccount } = compiled
      if (PasskeyAccount === undefined) throw new Error('accounts.sol has other contracts')
      const { publicKey, secretKey } = p256.keygen()
      const key = bytesToHex(p256.Point.fromBytes(publicKey).toBytes(false))
      const address = await chain.deploy(PasskeyAccount, [slice(key, 1, 33), slice(key, 33)])
      const domain = { name: 'Passkey', version: '1', chainId: chain.id, verifyingContract: address }
      const signWith =
        (secret: Uint8Array): Sign =>
        async (text) =>
          passkeySignature(hashTypedData(nestedText(text, domain)), secret)
      return accountOf(chain, address, signWith(secretKey), {
        "another passkey's signature": signWith(p256.keygen().secretKey),
        'its signature over the bare text': async (text) => passkeySignature(hashMessage(text), secretKey),
      })
    },
  },
]

/** The sample account of ERC-4337 0.8, by the key of its owner, before its deployment and after it. */
export async function makeSample({ chain, load }: Parts) {
  const artifact = (name: string): Artifact => load(`@account-abstraction/contracts/artifacts/${name}.json`)
  const { abi, bytecode } = artifact('SimpleAccountFactory')
  const factory = await chain.deploy({ abi, bytecode }, [await chain.deploy(artifact('EntryPoint'))])
  const owner = newKey()
  const args = [owner.address, 0n]
  const address = (await chain.client.readContract({
    address: factory,
    abi,
    functionName: 'getAddress',
    args,
  })) as Address
  const creator = (await chain.client.readContract({ address: factory, abi, functionName: 'senderCreator' })) as Address
  const data = encodeFunctionData({ abi, functionName: 'createAccount', args })
  const bare = signedBy(owner)
  const wrapped: Sign = async (text) =>
    serializeErc6492Signature({ address: factory, data, signature: await bare(text) })
  return {
    wrapped: providerOf(address, wrapped, chain.id),
    bare: providerOf(address, bare, chain.id),
    deploy: () => chain.transact(factory, data, creator),
    isDeployed: async () => (await chain.client.getCode({ address })) !== undefined,
  }
}
