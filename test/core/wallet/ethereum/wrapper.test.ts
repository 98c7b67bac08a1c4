import {
  concatHex,
  encodeAbiParameters,
  encodeFunctionData,
  type Hex,
  isErc6492Signature,
  numberToHex,
  parseAbi,
  parseErc6492Signature,
  serializeErc6492Signature,
  size,
  slice,
} from 'viem'
import { describe, expect, test } from 'vitest'
import { callData, unwrap } from '../../../../src/core/wallet/ethereum/contract.ts'
import { hexToBytes } from '../../../../src/shared/hex.ts'

const mark: Hex = `0x${'6492'.repeat(16)}`
const factory: Hex = `0x${'c0de'.repeat(10)}`

/** What viem reads from a signature, in the form of {@link unwrap}. */
function unwrapByViem(signature: Hex): ReturnType<typeof unwrap> {
  if (!isErc6492Signature(signature)) return { signature: signature.slice(2) }
  try {
    const { address = '0x', data = '0x', signature: inner } = parseErc6492Signature(signature)
    return {
      signature: inner.slice(2),
      factory: address.slice(2).toLowerCase().padStart(64, '0'),
      factoryData: data.slice(2),
    }
  } catch {
    return undefined
  }
}

/** Compares both readers. Returns whether they accept the signature as wrapped. */
function compare(signature: Hex): boolean {
  const read = unwrap(signature.slice(2))
  expect(read, signature).toEqual(unwrapByViem(signature))
  return read?.factory !== undefined
}

/** Numbers from a seed, the same in every run. */
function generator(seed: number): (below: number) => number {
  let state = seed
  return (below) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    return Math.floor((state / 2 ** 32) * below)
  }
}

const random = generator(6492)
const randomHex = (bytes: number): Hex =>
  `0x${Array.from({ length: bytes }, () => random(256).toString(16).padStart(2, '0')).join('')}`
const lengths = [0, 1, 31, 32, 33, 64, 65, 96, 300]
const wrappers = lengths.flatMap((data) =>
  lengths.map((inner) =>
    serializeErc6492Signature({ address: factory, data: randomHex(data), signature: randomHex(inner) }),
  ),
)

/** A wrapper with one word replaced. */
function withWord(signature: Hex, index: number, word: Hex): Hex {
  const [before, after] = [signature.slice(0, 2 + 64 * index), signature.slice(2 + 64 * (index + 1))]
  return `${before}${word.slice(2)}${after}` as Hex
}

describe('the wrapper of EIP-6492 is read as viem reads it', () => {
  test('with call data and signatures of many lengths', () => {
    for (const signature of wrappers) expect(compare(signature)).toBe(true)
  })

  test('with another wrapper inside, of which only the outer one is taken off', () => {
    for (const inner of wrappers) {
      const twice = serializeErc6492Signature({ address: factory, data: '0x', signature: inner })
      expect(compare(twice)).toBe(true)
      expect(unwrap(twice.slice(2))?.signature).toBe(inner.slice(2))
    }
  })

  test('cut at every byte, with and without the mark behind the cut', () => {
    const signature = serializeErc6492Signature({ address: factory, data: randomHex(70), signature: randomHex(65) })
    for (let end = 0; end < size(signature); end++) {
      const cut = end === 0 ? '0x' : slice(signature, 0, end)
      compare(cut)
      compare(concatHex([cut, mark]))
      compare(end === 0 ? signature : slice(signature, end))
    }
  })

  test('with bytes between its parts and the mark, or behind the mark', () => {
    for (const signature of wrappers) {
      expect(compare(concatHex([signature.slice(0, -64) as Hex, randomHex(random(100)), mark]))).toBe(true)
      expect(compare(concatHex([signature, '0x00']))).toBe(false)
    }
  })

  test.each(['offset of the call data', 'offset of the signature', 'length of the call data'])(
    'with any %s',
    (word) => {
      const index = { 'offset of the call data': 1, 'offset of the signature': 2 }[word] ?? 3
      const signature = serializeErc6492Signature({ address: factory, data: randomHex(70), signature: randomHex(65) })
      const total = size(signature)
      let accepted = 0
      for (let value = 0; value <= total + 32; value++) {
        if (compare(withWord(signature, index, numberToHex(value, { size: 32 })))) accepted++
      }
      expect(accepted).toBeGreaterThan(10)
      for (const bits of [31, 32, 52, 53, 54, 63, 64, 128, 255]) {
        for (const near of [-1n, 0n, 1n, 96n, 256n]) {
          const huge = (1n << BigInt(bits)) + near
          expect(compare(withWord(signature, index, numberToHex(huge, { size: 32 })))).toBe(false)
        }
      }
      expect(compare(withWord(signature, index, `0x${'ff'.repeat(32)}`))).toBe(false)
    },
  )

  test('with bytes in front of the factory', () => {
    const signature = wrappers[40] as Hex
    expect(compare(withWord(signature, 0, `0x${'ff'.repeat(12)}${factory.slice(2)}`))).toBe(true)
  })

  test('with random bytes before the mark, and random bytes changed', () => {
    for (let round = 0; round < 2_000; round++) {
      compare(concatHex([randomHex(random(300)), mark]))
      const changed = Buffer.from((wrappers[random(wrappers.length)] as Hex).slice(2), 'hex')
      for (let changes = 1 + random(4); changes > 0; changes--) changed[random(changed.length - 32)] = random(256)
      compare(`0x${changed.toString('hex')}`)
    }
  })
})

test('the call is encoded as viem encodes it', () => {
  const abi = parseAbi(['function isValidSignature(bytes32 hash, bytes signature) view returns (bytes4)'])
  for (let length = 0; length < 300; length++) {
    const [hash, signature] = [randomHex(32), randomHex(length)]
    const encoded = encodeFunctionData({ abi, args: [hash, signature] })
    expect(`0x${callData(hexToBytes(hash.slice(2)) as Uint8Array, signature.slice(2))}`).toBe(encoded)
  }
  const long = randomHex(16_384)
  const args = encodeAbiParameters([{ type: 'bytes32' }, { type: 'bytes' }], [mark, long])
  expect(`0x${callData(hexToBytes(mark.slice(2)) as Uint8Array, long.slice(2))}`).toBe(concatHex(['0x1626ba7e', args]))
})
