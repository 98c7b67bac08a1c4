import {
  concatHex,
  encodeAbiParameters,
  getAddress,
  type Hex,
  hashMessage,
  serializeErc6492Signature,
  serializeErc8010Signature,
} from 'viem'
import { privateKeyToAccount } from 'viem/accounts'
import { beforeEach, describe, expect, test } from 'vitest'
import { ethereum } from '../../../../src/core/wallet/ethereum/ethereum.ts'
import { nativeVerifier } from '../../../../src/core/wallet/native.ts'
import { CountersignError } from '../../../../src/shared/errors.ts'
import { countOf, startChain, type TestChain } from '../../../support/evm.ts'
import vectors from '../../../vectors/ethereum.json' with { type: 'json' }

const { contract } = vectors
const { contracts, text } = contract
const owner = privateKeyToAccount(contract.ownerPrivateKey as Hex)
const factory = contract.create2Factory as Hex
/** What the factory of the vectors takes: a salt, and init code. It returns the new address. */
const deployment = concatHex([contract.salt as Hex, contract.init as Hex])

let chain: TestChain
beforeEach(async () => {
  chain = await startChain()
})

interface Claim {
  readonly address: string
  readonly signature: string
  readonly text?: string
  readonly chainId?: string
  readonly chain?: TestChain
}

/** The identity that a proof proves, or the reason for which it is refused. */
async function judged({ address, signature, chainId = '1', ...claim }: Claim) {
  const { url } = claim.chain ?? chain
  const proof = { publicKeyHex: '', signatureHex: signature.replace(/^0x/, ''), address, chainId }
  try {
    const adapter = ethereum({ [chainId]: url })
    return (await adapter.verify(claim.text ?? text, proof, nativeVerifier)) ?? 'SIGNATURE_INVALID'
  } catch (error) {
    if (error instanceof CountersignError) return error.reason
    throw error
  }
}

function identityOf(address: string, chainId = '1') {
  return {
    adapterId: 'ethereum',
    subject: `eip155:${chainId}:${address.toLowerCase()}`,
    publicKeyHex: '',
    address: `eip155:${chainId}:${getAddress(address)}`,
  }
}

/** A signature of 65 bytes that no key made; a contract may take it all the same. */
const anySignature: Hex = `0x${'11'.repeat(65)}`

function wrapped(signature: Hex, to: Hex, data: Hex): Hex {
  return serializeErc6492Signature({ address: to, data, signature })
}

/** Init code that leaves a contract with this code. */
function initOf(runtime: string): Hex {
  const size = (runtime.length - 2) / 2
  return concatHex([`0x60${size.toString(16).padStart(2, '0')}80600a5f395ff300`, runtime as Hex])
}

/** The address at which the factory of the vectors deploys init code, and the factory's call data. */
async function deployable(runtime: string): Promise<{ address: Hex; data: Hex }> {
  const data = concatHex([contract.salt as Hex, initOf(runtime)])
  const scratch = await startChain()
  await scratch.deploy(contract.create2FactoryRuntime, factory)
  const answer = await fetch(scratch.url, {
    method: 'POST',
    body: JSON.stringify({ id: 1, method: 'eth_call', params: [{ to: factory, data }, 'latest'] }),
  })
  const { result } = (await answer.json()) as { result: Hex }
  return { address: result, data }
}

describe('a wallet that is deployed', () => {
  test('is the identity of its chain if it answers with the magic word', async () => {
    const address = await chain.deploy(contract.runtime)
    expect(await judged({ address, signature: contract.signature })).toEqual(identityOf(address))
    expect(await judged({ address: getAddress(address), signature: contract.signature })).toEqual(identityOf(address))
  })

  test('is another identity on another chain', async () => {
    const other = await startChain(8453)
    const address = await other.deploy(contract.runtime)
    const claim = { address, signature: contract.signature, chain: other, chainId: '8453' }
    expect(await judged(claim)).toEqual(identityOf(address, '8453'))
  })

  test("refuses another text, another owner's signature, and a changed byte", async () => {
    const address = await chain.deploy(contract.runtime)
    const claim = { address, signature: contract.signature }
    expect(await judged({ ...claim, text: `${text} ` })).toBe('SIGNATURE_INVALID')
    const stranger = privateKeyToAccount(`0x${'08'.repeat(32)}`)
    expect(await judged({ address, signature: await stranger.signMessage({ message: text }) })).toBe(
      'SIGNATURE_INVALID',
    )
    for (const index of [0, 31, 32, 63, 64]) {
      const changed = Buffer.from(contract.signature.slice(2), 'hex')
      changed[index] = changed[index]! ^ 1
      expect(await judged({ address, signature: changed.toString('hex') }), `byte ${index}`).toBe('SIGNATURE_INVALID')
    }
  })

  test.each(['reverts', 'invalidOpcode', 'returnsEmpty', 'returnsOne', 'dirtyMagic', 'fourByteMagic'] as const)(
    'that %s accepts nothing',
    async (name) => {
      const address = await chain.deploy(contracts[name])
      expect(await judged({ address, signature: contract.signature })).toBe('SIGNATURE_INVALID')
    },
  )

  test('may take signatures of any length, down to none', async () => {
    const address = await chain.deploy(contracts.alwaysValid)
    for (const length of [0, 1, 31, 32, 64, 65, 97, 16_384]) {
      expect(await judged({ address, signature: '00'.repeat(length) }), `${length} bytes`).toEqual(identityOf(address))
    }
  })

  test('accepts a signature that still has its factory around it, by what is inside', async () => {
    const address = await chain.deploy(contract.runtime)
    const signature = wrapped(contract.signature as Hex, factory, deployment)
    expect(await judged({ address, signature })).toEqual(identityOf(address))
    expect(await judged({ address, signature: wrapped(anySignature, factory, deployment) })).toBe('SIGNATURE_INVALID')
  })

  test("cannot be made to accept a signature by what its author has called as the 'factory'", async () => {
    const address = await chain.deploy(contracts.validAfterAnyPoke)
    expect(await judged({ address, signature: wrapped(anySignature, address, '0x') })).toBe('SIGNATURE_INVALID')
    // The attack is one: poked by a transaction, the contract does accept.
    await chain.transact(address, '0x')
    expect(await judged({ address, signature: anySignature })).toEqual(identityOf(address))
  })

  test('is asked from a plain address: neither the zero address nor the wallet itself', async () => {
    // if (caller == 0 || origin == 0 || caller == this) return the magic word; else revert.
    const address = await chain.deploy(`0x331532151733301417600f575f5ffd5b${contracts.alwaysValid.slice(2)}`)
    expect(await judged({ address, signature: anySignature })).toBe('SIGNATURE_INVALID')
  })
})

describe('a wallet that is not deployed', () => {
  const address = contract.counterfactualAddress
  beforeEach(() => chain.deploy(contract.create2FactoryRuntime, factory))

  test('is the identity of its chain, and is still not deployed afterwards', async () => {
    expect(await judged({ address, signature: contract.erc6492Signature })).toEqual(identityOf(address))
    expect(await judged({ address, signature: contract.erc6492Signature })).toEqual(identityOf(address))
    expect(countOf(chain, 'eth_call')).toBe(2)
  })

  test('refuses another text, a wrong signature inside, and one without a factory', async () => {
    const signature = contract.erc6492Signature
    expect(await judged({ address, signature, text: `${text} ` })).toBe('SIGNATURE_INVALID')
    expect(await judged({ address, signature: wrapped(anySignature, factory, deployment) })).toBe('SIGNATURE_INVALID')
    expect(await judged({ address, signature: contract.signature })).toBe('SIGNATURE_INVALID')
    expect(await judged({ address, signature: '11'.repeat(130) })).toBe('SIGNATURE_INVALID')
  })

  test('has to be the one that the factory makes', async () => {
    const elsewhere = `0x${'ab'.repeat(20)}`
    expect(await judged({ address: elsewhere, signature: contract.erc6492Signature })).toBe('SIGNATURE_INVALID')
    const other = concatHex([`0x${'01'.repeat(32)}`, contract.init as Hex])
    const signature = wrapped(contract.signature as Hex, factory, other)
    expect(await judged({ address, signature })).toBe('SIGNATURE_INVALID')
  })

  test.each(['reverts', 'invalidOpcode', 'returnsEmpty', 'returnsOne', 'dirtyMagic', 'fourByteMagic'] as const)(
    'and that %s once it is accepts nothing',
    async (name) => {
      const { address, data } = await deployable(contracts[name])
      expect(await judged({ address, signature: wrapped(anySignature, factory, data) })).toBe('SIGNATURE_INVALID')
    },
  )

  test('and that returns the magic word and more accepts nothing', async () => {
    const { address, data } = await deployable('0x631626ba7e60e01b5f5260405ff3')
    expect(await judged({ address, signature: wrapped(anySignature, factory, data) })).toBe('SIGNATURE_INVALID')
    const valid = await deployable(contracts.alwaysValid)
    expect(await judged({ address: valid.address, signature: wrapped('0x', factory, valid.data) })).toEqual(
      identityOf(valid.address),
    )
  })

  test('and that needs to change the state to answer accepts nothing', async () => {
    // sstore(0, 1), then the magic word: ERC-1271 is a static call.
    const { address, data } = await deployable(`0x60015f55${contracts.alwaysValid.slice(2)}`)
    expect(await judged({ address, signature: wrapped(anySignature, factory, data) })).toBe('SIGNATURE_INVALID')
  })

  test('and that takes all the gas, in its factory or by itself, is refused', async () => {
    // mload(0xffffffff) costs more than there is.
    const greedy = '0x63ffffffff51'
    const burner = await chain.deploy(greedy)
    expect(await judged({ address, signature: wrapped(anySignature, burner, '0x') })).toBe('SIGNATURE_INVALID')
    const { address: burning, data } = await deployable(greedy)
    expect(await judged({ address: burning, signature: wrapped(anySignature, factory, data) })).toBe(
      'SIGNATURE_INVALID',
    )
  })

  test('has to exist after the call: a factory that only claims to make it is not enough', async () => {
    // An account without code answers every call with success and nothing; the magic word in its address changes
    // nothing.
    const idle = await chain.deploy('0x00')
    const magic = '0x1626ba7e00000000000000000000000000000000'
    for (const target of [`0x${'cd'.repeat(20)}` as Hex, idle]) {
      expect(await judged({ address: magic, signature: wrapped(anySignature, target, '0x') })).toBe('SIGNATURE_INVALID')
    }
  })

  test('is never a precompiled contract, which is not even asked about', async () => {
    for (const last of ['00', '01', '02', '04', '0a']) {
      const claimed = `0x${last.padStart(40, '0')}`
      expect(await judged({ address: claimed, signature: contract.erc6492Signature })).toBe('SIGNATURE_INVALID')
    }
    expect(chain.calls).toEqual([])
  })

  test('is not what a chain has without code at an address of its own, although it answers', async () => {
    const precompile = { address: `0x${'ab'.repeat(20)}` as Hex, returns: `0x1626ba7e${'00'.repeat(28)}` }
    const odd = await startChain(1, [precompile])
    const claim = { address: precompile.address, chain: odd }
    expect(await judged({ ...claim, signature: anySignature })).toBe('SIGNATURE_INVALID')
    expect(await judged({ ...claim, signature: wrapped(anySignature, factory, '0x') })).toBe('SIGNATURE_INVALID')
    expect(countOf(odd, 'eth_call')).toBe(1)
  })

  test.each([
    ['nothing', '0x'],
    ['zeros', `0x${'00'.repeat(96)}`],
    ['offsets that point nowhere', `0x${'ff'.repeat(96)}`],
    ['half a word', '0x1234'],
  ])('is refused if %s stands before the mark of EIP-6492', async (_, before) => {
    expect(await judged({ address, signature: before + '6492'.repeat(16) })).toBe('SIGNATURE_INVALID')
  })

  test('that is deployed while it is being asked about is asked, and its factory left alone', async () => {
    // Between the two calls, somebody deploys a contract that would be poked as the factory.
    chain.trouble(async ({ method }) => {
      if (method === 'eth_call') await chain.deploy(contracts.validAfterAnyPoke, address)
      return false
    })
    expect(await judged({ address, signature: wrapped(anySignature, address as Hex, '0x') })).toBe('SIGNATURE_INVALID')
    expect(countOf(chain, 'eth_call')).toBe(1)
  })
})

describe('an account with a key', () => {
  test('needs no RPC while its key signs, with any code', async () => {
    for (const code of [undefined, contracts.alwaysValid]) {
      if (code !== undefined) await chain.deploy(code, owner.address)
      const signature = await owner.signMessage({ message: text })
      const { address } = owner
      const proven = await judged({ address, signature })
      expect(proven).toMatchObject({ subject: address.toLowerCase(), address })
    }
    expect(chain.calls).toEqual([])
  })

  test('and with code (EIP-7702) is the identity of the chain if the code answers', async () => {
    const delegate = await chain.deploy(contracts.alwaysValid)
    const account = privateKeyToAccount(`0x${'09'.repeat(32)}`)
    await chain.deploy(`0xef0100${delegate.slice(2)}`, account.address)
    expect(await judged({ address: account.address, signature: anySignature })).toEqual(identityOf(account.address))
  })

  test('and with a delegation around its signature (ERC-8010) is refused until the chain has it', async () => {
    const delegate = await chain.deploy(contracts.alwaysValid)
    const { address, signAuthorization, signMessage } = owner
    const authorization = await signAuthorization({ address: delegate as Hex, chainId: 1, nonce: 0 })
    const wrapped = serializeErc8010Signature({ authorization, signature: await signMessage({ message: text }) })
    // The mark of the ERC's later draft is another one.
    for (const signature of [wrapped, concatHex([wrapped.slice(0, -64) as Hex, `0x${'7702'.repeat(16)}`])]) {
      expect(await judged({ address, signature })).toBe('SIGNATURE_INVALID')
    }
    await chain.deploy(`0xef0100${delegate.slice(2)}`, address)
    expect(await judged({ address, signature: wrapped })).toEqual(identityOf(address))
  })

  test('and without code is refused with a signature that is not its own, the high s included', async () => {
    const { refuseHighS, address, text } = vectors.ethereum.find((vector) => vector.refuseHighS !== undefined)!
    expect(await judged({ address, signature: refuseHighS!, text })).toBe('SIGNATURE_INVALID')
    expect(await judged({ address: owner.address, signature: contract.signature, text: 'other' })).toBe(
      'SIGNATURE_INVALID',
    )
  })
})

test('a contract is asked about the hash of the text, with the current state and a limit on gas', async () => {
  const address = await chain.deploy(contracts.alwaysValid)
  await judged({ address, signature: anySignature })
  expect(chain.calls.map(({ method }) => method)).toEqual(['eth_chainId', 'eth_getCode', 'eth_call'])
  const [transaction, block] = chain.calls[2]!.params
  expect(block).toBe('latest')
  expect(chain.calls[1]!.params).toEqual([address, 'latest'])
  expect(Number(transaction.gas)).toBeLessThanOrEqual(16_000_000)
  const args = encodeAbiParameters([{ type: 'bytes32' }, { type: 'bytes' }], [hashMessage(text), anySignature])
  expect(transaction).toMatchObject({ to: address, data: concatHex(['0x1626ba7e', args]) })
})

test('nothing is remembered: a contract that changes its mind is believed at once', async () => {
  const address = await chain.deploy(contracts.alwaysValid)
  const adapter = ethereum({ 1: chain.url })
  const proof = { publicKeyHex: '', signatureHex: anySignature.slice(2), address, chainId: '1' }
  expect(await adapter.verify(text, proof, nativeVerifier)).toEqual(identityOf(address))
  await chain.deploy(contracts.reverts, address)
  expect(await adapter.verify(text, proof, nativeVerifier)).toBeUndefined()
  expect(countOf(chain, 'eth_chainId')).toBe(1)
})
