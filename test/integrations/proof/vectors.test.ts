import { describe, expect, test } from 'vitest'
import {
  type ProofArtifact,
  type ProofArtifactFields,
  ProofError,
  verifyProofArtifact,
} from '../../../src/integrations/proof/index.ts'
import { type AdapterId, adapterIds } from '../../../src/shared/adapters.ts'
import { accepted, baseOptions, inCamelCase, refused } from '../../support/proofs.ts'

/** The reason for which an artifact is refused, or what it proves. */
async function verdictOn(...[artifact, options]: Parameters<typeof verifyProofArtifact>) {
  try {
    return await verifyProofArtifact(artifact, options)
  } catch (error) {
    if (!(error instanceof ProofError)) throw error
    expect(error.message).toMatch(/^[^\n]+$/)
    return error.reason
  }
}

/** An artifact without the fields that repeat what the text says. */
function withoutCopies({ payload, payload_hash, ...artifact }: ProofArtifactFields): ProofArtifactFields {
  return artifact
}

describe('an artifact that holds', () => {
  test.each(accepted)('$name', async ({ artifact, options, owner }) => {
    const line = (name: string) => new RegExp(`^${name}: (.*)$`, 'm').exec(artifact.message)?.[1]
    const proof = await verdictOn(artifact, options)
    expect(proof).toMatchObject({
      adapterId: owner.adapterId,
      address: owner.address,
      publicKeyHex: owner.publicKeyHex ?? '',
      appName: 'Example',
      origin: 'https://app.example',
      orderId: line('Order ID'),
      challengeId: line('Challenge ID'),
      nonce: line('Nonce'),
      issuedAt: Date.parse(line('Issued At')!),
      expiresAt: Date.parse(line('Expires At')!),
      confirmationCode: line('Code'),
      payloadHash: line('Payload Hash'),
    })
    expect(await verdictOn(inCamelCase(artifact), options)).toEqual(proof)
  })

  test("says the requester's words, the account and the payload, as far as they are known", async () => {
    const named = accepted.find(({ name }) => name === 'ethereum, with the account in the text')!
    expect(await verifyProofArtifact(named.artifact, named.options)).toMatchObject({
      displayTitle: 'Zahlung über 250 NIM 🥐',
      displaySummary: 'Order ID: 1, to Green Bakery',
      account: `eip155:8453:${named.artifact.address}`,
      payload: '{"amount":250,"currency":"NIM","to":"Green Bakery"}',
    })
    const { payload, payload_hash, ...bare } = named.artifact
    const proof = await verifyProofArtifact(bare, baseOptions)
    expect(proof).not.toHaveProperty('payload')
    expect(proof.payloadHash).toBe(payload_hash)
    // The application has it in a form of its own.
    const own = '{"to":"Green Bakery",\n"currency":"NIM","amount":2.5e2}'
    expect((await verifyProofArtifact(bare, { ...baseOptions, payload: own })).payload).toBe(payload)
    const shown = await verifyProofArtifact(withoutCopies(accepted[0]!.artifact), baseOptions)
    expect(shown).not.toHaveProperty('account')
    expect(shown.payload).toBe(payload)
  })
})

/** The vector of each adapter's wallet, with the payload in the text. */
const ofAdapter: Readonly<Record<AdapterId, (typeof accepted)[number] | undefined>> = {
  nimiq: named('nimiq'),
  ed25519: named('ed25519'),
  ethereum: named('ethereum'),
  solana: named('solana'),
}

function named(id: AdapterId): (typeof accepted)[number] | undefined {
  return accepted.find(({ name }) => name === `${id}, with the payload in the text`)
}

/** Wallets of these sign the same bytes, of which the documents warn. */
const alike = [
  ['ed25519', 'solana'],
  ['solana', 'ed25519'],
]

test.each(adapterIds.flatMap((id) => adapterIds.map((other) => [id, other] as const)))(
  'the vector of %s is a proof of %s only if these sign alike',
  async (id, other) => {
    const { artifact, owner } = ofAdapter[id]!
    const presented = { ...artifact, adapter_id: other, address: ofAdapter[other]!.artifact.address }
    const verdicts = [presented, { ...presented, address: artifact.address }].map((one) => verdictOn(one, baseOptions))
    const holds = (await Promise.all(verdicts)).some((verdict) => typeof verdict === 'object')
    const may = id === other || alike.some(([one, second]) => one === id && second === other)
    expect(holds && !may).toBe(false)
    if (id === other) expect(await verdictOn(artifact, { ...baseOptions, owner })).toMatchObject({ adapterId: id })
  },
)

describe('is refused:', () => {
  test.each(refused)('$name ($reason)', async ({ artifact, options, reason }) => {
    expect(await verdictOn(artifact, options)).toBe(reason)
    expect(await verdictOn(inCamelCase(artifact), options)).toBe(reason)
  })

  test('another payload than the application knows', async () => {
    const { artifact } = accepted[0]!
    const payload = '{"amount":25,"currency":"NIM","to":"Green Bakery"}'
    expect(await verdictOn(artifact, { ...baseOptions, payload })).toBe('PAYLOAD_MISMATCH')
  })

  test('a text without the payload that fits, unless the option says that it may lack it', async () => {
    const { artifact } = accepted.find(({ name }) => name === 'nimiq')!
    const { payloadLine: _, ...strict } = baseOptions
    expect(await verdictOn(artifact, strict)).toBe('PAYLOAD_MISMATCH')
    expect(await verdictOn(withoutCopies(artifact), { ...strict, payload: artifact.payload! })).toBe('PAYLOAD_MISMATCH')
    expect(await verdictOn(artifact, { ...strict, payloadLine: 'optional' })).toMatchObject({
      address: artifact.address,
    })
  })

  test('an adapter that is left out of the list', async () => {
    const { artifact, options } = accepted[0]!
    const { owner: _, ...anyOwner } = options
    expect(await verdictOn(artifact, { ...anyOwner, adapters: ['ed25519'] })).toBe('ADAPTER_UNKNOWN')
  })

  test.each<[string, object]>([
    // Addresses of nimiq and of ed25519 are made alike.
    ['adapter', { adapterId: 'ed25519' }],
    ['key', { publicKeyHex: '00'.repeat(32) }],
    ['address', { address: accepted[1]!.owner.address }],
  ])('an owner with another %s', async (_name, other) => {
    const { artifact, options, owner } = accepted[0]!
    expect(await verdictOn(artifact, { ...options, owner: { ...owner, ...other } })).toBe('WRONG_WALLET')
  })

  test('a field that is too long, before anything reads it', async () => {
    const { artifact, options } = accepted[0]!
    const refusals: [string, string][] = [
      ['message', 'message has more than 8192 characters'],
      ['signature_hex', 'signature_hex has more than 32768 characters'],
    ]
    for (const [name, problem] of refusals) {
      const long = { ...artifact, [name]: 'a'.repeat(1_000_000) }
      await expect(verifyProofArtifact(long, options)).rejects.toThrow(problem)
    }
  })

  test.each([
    ['null', null, 'MESSAGE_MALFORMED'],
    ['a text', 'proof', 'MESSAGE_MALFORMED'],
    ['an empty object', {}, 'MESSAGE_MALFORMED'],
    ['a list', [accepted[0]!.artifact], 'MESSAGE_MALFORMED'],
    ['a text that is a number', { ...accepted[0]!.artifact, message: 1 }, 'MESSAGE_MALFORMED'],
    ['an address that is an object', { ...accepted[0]!.artifact, address: {} }, 'ADDRESS_MISMATCH'],
    ['a signature that is no hex', { ...accepted[0]!.artifact, signature_hex: 'z'.repeat(128) }, 'SIGNATURE_INVALID'],
    ['a payload that is an object', { ...accepted[0]!.artifact, payload: {} }, 'PAYLOAD_MISMATCH'],
    ['a name of Object', { ...accepted[0]!.artifact, adapter_id: 'constructor' }, 'ADAPTER_UNKNOWN'],
    // A reader of the one spelling would see another hash than a reader of the other.
    ['a field in both spellings', { ...accepted[0]!.artifact, payloadHash: 'other' }, 'PAYLOAD_MISMATCH'],
    [
      'a field in both spellings, the other way round',
      { ...inCamelCase(accepted[0]!.artifact), payload_hash: 'other' },
      'PAYLOAD_MISMATCH',
    ],
  ])('%s', async (_name, artifact, reason) => {
    expect(await verdictOn(artifact as unknown as ProofArtifact, baseOptions)).toBe(reason)
  })
})

test('optional fields that are null or empty count as absent', async () => {
  const { artifact, options } = accepted[0]!
  const bare = withoutCopies(artifact)
  const filled = { ...bare, payload_hash: '', payload: null, chain_id: null, publicKeyHex: null }
  expect(await verdictOn(filled as unknown as ProofArtifact, options)).toEqual(await verdictOn(bare, options))
})
