import { createHash, getHashes } from 'node:crypto'
import { createRequire } from 'node:module'
import { secp256k1 } from '@noble/curves/secp256k1.js'
import { keccak_256 } from '@noble/hashes/sha3.js'
import { memoryAdapter } from 'better-auth/adapters/memory'
import { betterAuth } from 'better-auth/minimal'
import fc from 'fast-check'
import { type Hex, hashMessage, hexToBytes } from 'viem'
import { publicKeyToAddress } from 'viem/accounts'
import { describe, expect, onTestFinished, test } from 'vitest'
import { walletSignIn } from '../../../src/better-auth/index.ts'
import type { Result } from '../../../src/commands/doctor/check.ts'
import { doctorCommand } from '../../../src/commands/doctor/doctor.ts'
import { keccak256 } from '../../../src/core/wallet/ethereum/keccak.ts'
import { type KeyRecovery, portableRecovery } from '../../../src/core/wallet/secp256k1.ts'
import { chooseRecovery, selfTest } from '../../../src/core/wallet/webassembly.ts'
import { createCountersign } from '../../../src/index.ts'
import { runHereIn } from '../../support/command.ts'
import { keptLog } from '../../support/log-lines.ts'
import vectors from '../../vectors/ethereum.json' with { type: 'json' }
import wycheproof from '../../vectors/wycheproof-secp256k1.json' with { type: 'json' }

const wasmRecovery = chooseRecovery(['ethereum']) as KeyRecovery

const tiny: { recover: (...args: readonly unknown[]) => Uint8Array | null } = createRequire(import.meta.url)(
  'tiny-secp256k1',
)

/** Replaces the function of tiny-secp256k1 until the test ends. */
function breakTiny(recover: typeof tiny.recover): void {
  const actual = tiny.recover
  tiny.recover = recover
  onTestFinished(() => {
    tiny.recover = actual
  })
}

const { Point } = secp256k1
const n = Point.Fn.ORDER
const p = Point.Fp.ORDER
const word = (value: bigint): Uint8Array => Buffer.from(value.toString(16).padStart(64, '0'), 'hex')
const join = (r: bigint, s: bigint, v: number): Uint8Array => Uint8Array.of(...word(r), ...word(s), v)

/** The one answer of both: a key in hex, or `undefined`. */
function recovered(digest: Uint8Array, signature: Uint8Array): string | undefined {
  const [webAssembly, portable] = [wasmRecovery, portableRecovery].map(({ recover }) => {
    const key = recover(digest, signature)
    return key && Buffer.from(key).toString('hex')
  })
  expect(webAssembly, `${Buffer.from(digest).toString('hex')} ${Buffer.from(signature).toString('hex')}`).toBe(portable)
  return portable
}

const publicKeyOf = (secret: bigint): string => Buffer.from(Point.BASE.multiply(secret).toBytes(false)).toString('hex')

/** A signature by secrets of one's choice: that of the key, and the nonce. Its s may be in the upper half. */
function signAtWill(secret: bigint, nonce: bigint, digest: Uint8Array) {
  const { x, y } = Point.BASE.multiply(nonce).toAffine()
  const { Fn } = Point
  const s = Fn.mul(
    Fn.inv(nonce),
    Fn.add(Fn.create(BigInt(`0x${Buffer.from(digest).toString('hex')}`)), Fn.mul(x, secret)),
  )
  return { r: x, s, parity: Number(y & 1n) }
}

describe('the self-test', () => {
  test('passes both recoveries', () => {
    expect(wasmRecovery.kind).toBe('WebAssembly')
    expect(selfTest(wasmRecovery)).toBe(true)
    expect(selfTest(portableRecovery)).toBe(true)
  })

  const found: Uint8Array[] = []
  test.each<[string, KeyRecovery['recover']]>([
    ['finds nothing', () => undefined],
    [
      'throws',
      () => {
        throw new Error('out of order')
      },
    ],
    [
      'finds the same key for any signature',
      (digest, signature) => {
        const key = wasmRecovery.recover(digest, signature)
        if (key !== undefined) found.push(key)
        return found[0]
      },
    ],
    [
      'ignores the parity',
      (digest, signature) => wasmRecovery.recover(digest, Uint8Array.of(...signature.subarray(0, 64), 27)),
    ],
    [
      'takes an s in the upper half',
      (digest, signature) => {
        const s = BigInt(`0x${Buffer.from(signature.subarray(32, 64)).toString('hex')}`)
        if (s <= n >> 1n) return wasmRecovery.recover(digest, signature)
        const r = BigInt(`0x${Buffer.from(signature.subarray(0, 32)).toString('hex')}`)
        return wasmRecovery.recover(digest, join(r, n - s, 55 - (signature[64] as number)))
      },
    ],
    [
      'finds a key where there is none',
      (digest, signature) => wasmRecovery.recover(digest, signature) ?? Point.BASE.toBytes(false),
    ],
    [
      'returns compressed keys',
      (digest, signature) => {
        const key = wasmRecovery.recover(digest, signature)
        return key && Point.fromBytes(key).toBytes(true)
      },
    ],
  ])('fails one that %s', (_, recover) => {
    expect(selfTest({ kind: 'WebAssembly', recover })).toBe(false)
  })
})

describe('without a tiny-secp256k1 that works', () => {
  const broken = [
    ['finds the wrong key', () => Point.BASE.toBytes(false)],
    ['finds nothing', () => null],
    [
      'throws',
      () => {
        throw new WebAssembly.RuntimeError('unreachable')
      },
    ],
  ] as const
  const warning =
    'tiny-secp256k1 (WebAssembly) cannot be loaded here or fails its self-test, so signatures are checked in ' +
    'JavaScript, which takes four times as long'

  test.each(broken)('as it %s, a service starts with a warning and recovers in JavaScript', async (_, recover) => {
    breakTiny(recover)
    const { logger, lines } = keptLog()
    await using service = await started({ adapters: ['nimiq', 'ethereum'], logger })
    expect(service.description.recovery).toBe('portable')
    expect(lines.filter(({ level }) => level === 'warn').map(({ text, fields }) => [text, fields])).toContainEqual([
      warning,
      { adapter: 'ethereum' },
    ])
  })

  test('Better Auth starts with the same warning', async () => {
    breakTiny(() => null)
    const lines: unknown[] = []
    await betterAuth({
      baseURL: 'http://localhost:3000',
      secret: 'a secret for tests, not for anything else',
      database: memoryAdapter({}),
      logger: { level: 'warn', log: (level, text) => lines.push([level, text]) },
      plugins: [walletSignIn({ adapters: ['ethereum'] })],
    }).$context
    expect(lines).toEqual([['warn', warning]])
  })

  test('doctor warns, and says otherwise which one is in use', async () => {
    const wallets = async (): Promise<Result | undefined> => {
      const env = { COUNTERSIGN_ADAPTERS: 'nimiq,ethereum', COUNTERSIGN_STORE: 'sqlite::memory:', PORT: '0' }
      const { stdout } = await runHereIn(env, doctorCommand, ['--json'])
      const { checks }: { checks: readonly Result[] } = JSON.parse(stdout)
      return checks.find(({ check }) => check === 'wallets')
    }
    expect(await wallets()).toMatchObject({ status: 'ok', saw: 'WebAssembly checks signatures of Ethereum' })
    breakTiny(() => null)
    expect(await wallets()).toMatchObject({ status: 'warning', saw: warning })
  })
})

async function started(options: Parameters<typeof createCountersign>[0]) {
  const service = await createCountersign({ store: 'sqlite::memory:', ...options })
  return Object.assign(service, { [Symbol.asyncDispose]: () => service.close(0) })
}

test('without the adapter ethereum, nothing is loaded', async () => {
  breakTiny(() => {
    throw new Error('called')
  })
  const { logger, lines } = keptLog()
  await using service = await started({ adapters: ['nimiq', 'ed25519', 'solana'], logger })
  expect(service.description.recovery).toBeUndefined()
  expect(lines.filter(({ text }) => text.includes('secp256k1'))).toEqual([])
})

describe('both recoveries agree', () => {
  test.each(vectors.ethereum)('on the vector "$name" and its high s', ({ text, address, signature, refuseHighS }) => {
    const digest = hexToBytes(hashMessage(text))
    expect(publicKeyToAddress(`0x${recovered(digest, hexToBytes(signature as Hex))}`)).toBe(address)
    if (refuseHighS !== undefined) expect(recovered(digest, hexToBytes(refuseHighS as Hex))).toBeUndefined()
  })

  test('on the vectors of Wycheproof: the key of each valid one, once its s is in the lower half', () => {
    const counts = { valid: 0, high: 0, reduced: 0, invalid: 0 }
    for (const [key, message, signature, result] of wycheproof.vectors.map((line) => line.split(' '))) {
      const hash = createHash('sha256').update(String(message).replace('-', ''), 'hex').digest()
      const rs = Buffer.from(String(signature).replace('-', ''), 'hex')
      const keysOf = (bytes: Uint8Array) => [27, 28].map((v) => recovered(hash, Uint8Array.of(...bytes, v)))
      const s = BigInt(`0x0${rs.subarray(32).toString('hex')}`)
      const isHigh = result === 'valid' && s > n >> 1n
      if (isHigh) expect(keysOf(rs)).toEqual([undefined, undefined])
      const keys = keysOf(isHigh ? Uint8Array.of(...rs.subarray(0, 32), ...word(n - s)) : rs)
      // Verification takes an r that is the x of a point reduced by the order; recovery ids 2 and 3 are not taken.
      const isReduced = result === 'valid' && !keys.includes(key)
      if (isReduced) expect(BigInt(`0x${rs.subarray(0, 32).toString('hex')}`)).toBeLessThan(p - n)
      else expect(keys.includes(key), `${message} ${signature}`).toBe(result === 'valid')
      counts[isReduced ? 'reduced' : isHigh ? 'high' : (result as 'valid' | 'invalid')]++
    }
    expect(counts).toEqual({ valid: 95, high: 70, reduced: 2, invalid: 85 })
  })

  const digest = keccak_256(new Uint8Array(1))
  const edges = [0n, 1n, 2n, 3n, 5n, n >> 1n, (n >> 1n) + 1n, n - 1n, n, n + 1n, p - n, p - 1n, p, (1n << 256n) - 1n]

  test('on r, s and v at their edges', () => {
    let keys = 0
    for (const r of edges) {
      for (const s of edges) {
        for (const v of [0, 1, 2, 3, 26, 27, 28, 29, 30, 31, 35, 255]) {
          const key = recovered(digest, join(r, s, v))
          if (key !== undefined) keys++
          if (r === 0n || r >= n || s === 0n || s > n >> 1n) expect(key, `${r} ${s} ${v}`).toBeUndefined()
          if (![0, 1, 27, 28].includes(v)) expect(key, `${r} ${s} ${v}`).toBeUndefined()
        }
      }
    }
    expect(keys).toBeGreaterThan(0)
  })

  test('on the point at infinity and its neighbours, and on digests at their edges', () => {
    const { Fn } = Point
    const numbers = [digest, word(0n), word(1n), word(n - 1n), word(n), word(n + 1n), word((1n << 256n) - 1n)]
    let atInfinity = 0
    for (const hash of numbers) {
      const e = Fn.create(BigInt(`0x${Buffer.from(hash).toString('hex')}`))
      for (let nonce = 1n; nonce < 8n; nonce++) {
        const { x, y } = Point.BASE.multiply(nonce).toAffine()
        for (const s of [Fn.mul(e, Fn.inv(nonce)), Fn.mul(Fn.add(e, x), Fn.inv(nonce))]) {
          for (const parity of [0, 1]) {
            const key = recovered(hash, join(x, s, parity))
            const isInfinity = s === Fn.mul(e, Fn.inv(nonce)) && BigInt(parity) === (y & 1n)
            if (!isInfinity) continue
            atInfinity++
            expect(key).toBeUndefined()
          }
        }
      }
    }
    expect(atInfinity).toBeGreaterThan(20)
  })

  test('on signatures of other lengths', () => {
    const { r, s, parity } = signAtWill(7n, 2n, digest)
    const whole = join(r, s > n >> 1n ? n - s : s, s > n >> 1n ? 1 - parity : parity)
    expect(recovered(digest, whole)).toBe(publicKeyOf(7n))
    for (const length of [0, 1, 32, 63, 64, 66, 96, 130]) {
      const other = new Uint8Array(length)
      other.set(whole.subarray(0, Math.min(length, 65)))
      expect(recovered(digest, other), `${length} bytes`).toBeUndefined()
    }
  })

  const scalar = fc.oneof(fc.bigInt({ min: 1n, max: n - 1n }), fc.bigInt({ min: 1n, max: 9n }))
  const bytes32 = fc.uint8Array({ minLength: 32, maxLength: 32 })
  const v = fc.oneof(fc.constantFrom(0, 1, 27, 28), fc.nat(255))

  test('on random bytes', () => {
    fc.assert(
      fc.property(bytes32, bytes32, bytes32, v, (hash, r, s, last) => {
        recovered(hash, Uint8Array.of(...r, ...s, last))
      }),
      { numRuns: 300 },
    )
  })

  test('on valid signatures and what one changed bit makes of them', () => {
    const seen = { same: 0, other: 0, none: 0 }
    fc.assert(
      fc.property(scalar, scalar, bytes32, fc.option(fc.nat(65 * 8 - 1)), (secret, nonce, hash, bit) => {
        const { r, s, parity } = signAtWill(secret, nonce, hash)
        fc.pre(s !== 0n && r < n)
        const isHigh = s > n >> 1n
        const signature = join(r, isHigh ? n - s : s, 27 + (isHigh ? 1 - parity : parity))
        if (bit !== null) signature[bit >> 3] = (signature[bit >> 3] as number) ^ (1 << (bit & 7))
        const key = recovered(hash, signature)
        // Bits that turn v 27 into 0 or 28 into 1 do not exist, so a changed one makes another key or none.
        expect(key === publicKeyOf(secret)).toBe(bit === null)
        seen[bit === null ? 'same' : key === undefined ? 'none' : 'other']++
      }),
      { numRuns: 300 },
    )
    for (const [kind, count] of Object.entries(seen)) expect(count, kind).toBeGreaterThan(10)
  })
})

test('Keccak-256 is by node:crypto where that has it, and is that of the portable library', () => {
  expect(keccak256 !== keccak_256).toBe(getHashes().includes('keccak-256'))
  for (const length of [0, 1, 20, 64, 135, 136, 137, 271, 272, 273, 1000]) {
    const bytes = new Uint8Array(length).fill(length)
    expect(Buffer.from(keccak256(bytes))).toEqual(Buffer.from(keccak_256(bytes)))
  }
})
