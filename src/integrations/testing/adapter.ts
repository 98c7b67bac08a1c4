import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { chooseVerifier } from '../../core/wallet/native.ts'
import type {
  ProvenIdentity,
  RemoteChecks,
  SignatureVerifier,
  SignInForm,
  WalletAccount,
  WalletAdapter,
} from '../../core/wallet/wallet.ts'
import { CountersignError } from '../../shared/errors.ts'
import { bytesToHex, hexToBytes } from '../../shared/hex.ts'
import type { TestRunner } from './runner.ts'
import type { TestWallet } from './wallet.ts'

/** What {@link describeAdapterContract} tests. */
export interface AdapterContractOptions {
  readonly adapter: WalletAdapter
  /** Makes a wallet of the adapter's kind with a key of its own. Called several times. */
  readonly makeWallet: () => TestWallet | Promise<TestWallet>
  /**
   * Spellings of an address that name the same address, such as one in other case or without spaces. Default: the
   * address as it is.
   */
  readonly spellings?: (address: string) => readonly string[]
  /**
   * Whether an address without its first or its last letter is malformed, as it is if addresses have check digits or
   * one length. Default true. In base58 it can be another wallet's.
   */
  readonly cutAddressIsMalformed?: boolean
  /** Further lengths in bytes that signatures of the kind can have, such as 64 where wallets make 65. */
  readonly otherSignatureBytes?: readonly number[]
  /** Chain that the wallets name, as the adapter's sign-in form writes it. Needed if the adapter has chains. */
  readonly chainId?: string
  /** Verifier that the adapter is given. Default: the one that a service would choose on this machine. */
  readonly ed25519?: SignatureVerifier
}

/** A message and a proof over it, as bytes. */
interface SignedMessage {
  readonly message: string
  readonly publicKey: Uint8Array
  readonly signature: Uint8Array
  readonly address: string | undefined
  readonly chainId?: string | undefined
}

/** How an adapter judged a claim: the identity it proves, or how it was refused. */
type Judgement =
  | { readonly proven: ProvenIdentity; readonly refused?: never }
  | { readonly proven?: never; readonly refused: 'SIGNATURE_INVALID' | 'INVALID_REQUEST' | 'ADDRESS_MISMATCH' }

const message = [
  'Example requests authentication',
  'Action: auth.login',
  'Origin: https://app.example',
  'Challenge ID: login',
  'Nonce: n0t-a-real-nonce',
  'Issued At: 2026-01-01T00:00:00.000Z',
  'Expires At: 2026-01-01T00:05:00.000Z',
].join('\n')

const idForm = /^[a-z0-9][a-z0-9-]{0,31}$/
const maxSubjectLength = 200

/**
 * Declares tests of what the contract of a {@link WalletAdapter} says: honest proofs prove a stable identity, and a
 * proof that differs from an honest one in a single byte, letter or length does not. They cannot show that the
 * signature scheme is sound: also test published vectors, and the forgeries that are known for it.
 */
export function describeAdapterContract({ describe, test }: TestRunner, options: AdapterContractOptions): void {
  const { adapter, makeWallet, spellings = (address) => [address] } = options
  const { ed25519 = chooseVerifier('auto'), cutAddressIsMalformed = true, otherSignatureBytes = [] } = options

  /** An honest claim of a wallet, with its address. */
  const claimOf = async (wallet: TestWallet, text = message): Promise<SignedMessage> => ({
    message: text,
    publicKey: bytesOf(wallet.publicKeyHex),
    signature: bytesOf(await wallet.sign(text)),
    address: wallet.address,
  })

  /** Asks the adapter. Fails the test for anything but what the contract allows as an answer. */
  const judge = async (claim: SignedMessage, remote?: RemoteChecks): Promise<Judgement> => {
    const { message, address, chainId } = claim
    const [publicKeyHex, signatureHex] = [bytesToHex(claim.publicKey), bytesToHex(claim.signature)]
    try {
      const proof = { publicKeyHex, signatureHex, address, chainId, adapterId: adapter.id }
      const proven = await adapter.verify(message, proof, ed25519, remote)
      if (proven === undefined) return { refused: 'SIGNATURE_INVALID' }
      assertWellFormed(proven)
      return { proven }
    } catch (error) {
      if (!(error instanceof CountersignError)) throw error
      const { reason } = error
      if (reason === 'RATE_LIMITED' && remote !== undefined) throw error
      if (reason === 'INVALID_REQUEST' || reason === 'ADDRESS_MISMATCH') return { refused: reason }
      throw new assert.AssertionError({ message: `an adapter refuses with ${reason}, which is not its to use` })
    }
  }

  const assertWellFormed = ({ adapterId, subject, publicKeyHex, address }: ProvenIdentity): void => {
    assert.equal(adapterId, adapter.id, 'an identity has the id of the adapter that proved it')
    assert.ok(subject.length >= 1 && subject.length <= maxSubjectLength, 'a subject has 1 to 200 characters')
    assert.match(publicKeyHex, /^([0-9a-f]{2})*$/)
    assert.equal(adapter.readAddress(address), address, 'the address that was proven is not in its canonical form')
  }

  const proven = async (claim: SignedMessage): Promise<ProvenIdentity> => {
    const judgement = await judge(claim)
    assert.ok(judgement.proven, `an honest proof is refused: ${judgement.refused}`)
    return judgement.proven
  }

  /** An honest claim of a new wallet, and the subject that it proves. */
  const honest = async (): Promise<{ claim: SignedMessage; subject: string }> => {
    const claim = await claimOf(await makeWallet())
    return { claim, subject: (await proven(claim)).subject }
  }

  const assertRefused = async (claim: SignedMessage, what: string): Promise<void> => {
    assert.ok((await judge(claim)).refused, `${what} is accepted`)
  }

  /**
   * Asserts that a claim does not prove the wallet with this subject. An adapter that recovers the key from the
   * signature may find another wallet if nothing in the claim says which one it has to be.
   */
  const assertNotProven = async (claim: SignedMessage, subject: string, what: string): Promise<void> => {
    await assertRefused(claim, what)
    const judgement = await judge({ ...claim, address: undefined })
    assert.notEqual(judgement.proven?.subject, subject, `${what} and without an address is accepted`)
  }

  describe(`the adapter ${adapter.id} keeps the contract of a wallet adapter:`, () => {
    test('its id is of the form that identities need, and it has a name', async () => {
      assert.match(adapter.id, idForm)
      assert.match(adapter.displayName, /\S/)
    })

    test('its check at the start, if it has one, finds nothing wrong', async () => {
      const warnings: string[] = []
      await adapter.checkAtStart?.((text) => warnings.push(text))
      assert.deepEqual(warnings, [])
    })

    test('a valid proof proves its wallet, with its address or without', async () => {
      const wallet = await makeWallet()
      const claim = await claimOf(wallet)
      const first = await proven(claim)
      assert.equal(first.publicKeyHex, wallet.publicKeyHex)
      assert.equal(first.address, wallet.address)
      const unnamed = await judge({ ...claim, address: undefined })
      // With neither key nor address, the wallet may be named nowhere.
      if (wallet.publicKeyHex !== '' || unnamed.refused !== 'INVALID_REQUEST') {
        assert.deepEqual({ ...unnamed.proven }, { ...first })
      }
      for (const address of spellings(wallet.address)) {
        assert.deepEqual({ ...(await proven({ ...claim, address })) }, { ...first }, `the spelling ${address}`)
      }
    })

    test('a wallet has one subject for all texts that it signs, and no other wallet has the same', async () => {
      const [wallet, other] = [await makeWallet(), await makeWallet()]
      const { subject } = await proven(await claimOf(wallet))
      for (const text of [message, `${message}\nTitle: grüße 你好 😀`, 'x'.repeat(8192), 'a']) {
        assert.equal((await proven(await claimOf(wallet, text))).subject, subject)
      }
      assert.notEqual((await proven(await claimOf(other))).subject, subject)
    })

    test('one bit changed in any byte of the public key proves nothing', async () => {
      const { claim, subject } = await honest()
      for (const [i, publicKey] of flipped(claim.publicKey)) {
        await assertNotProven({ ...claim, publicKey }, subject, `a public key changed in byte ${i}`)
        await assertRefused({ ...claim, publicKey, address: undefined }, `a public key changed in byte ${i}`)
      }
    })

    test('one bit changed in any byte of the signature proves nothing', async () => {
      const { claim, subject } = await honest()
      for (const [i, signature] of flipped(claim.signature)) {
        await assertNotProven({ ...claim, signature }, subject, `a signature changed in byte ${i}`)
      }
    })

    test('one letter changed, added or removed in the message proves nothing', async () => {
      const { claim, subject } = await honest()
      for (const text of misspelt(message)) {
        await assertRefused({ ...claim, message: text }, 'a signature over a misspelt message')
      }
      for (const text of [`x${message.slice(1)}`, `${message} `, `${message}\0`, message.slice(0, -1), '']) {
        await assertNotProven({ ...claim, message: text }, subject, 'a signature over another message')
      }
    })

    test("another wallet's key or signature proves nothing", async () => {
      const [claim, other] = [await claimOf(await makeWallet()), await claimOf(await makeWallet())]
      const { subject } = await proven(claim)
      await assertNotProven({ ...claim, signature: other.signature }, subject, "another wallet's signature")
      if (claim.publicKey.length === 0) return
      await assertNotProven({ ...claim, publicKey: other.publicKey }, subject, "another wallet's key")
    })

    test('a key or signature of another length proves nothing', async () => {
      const { claim, subject } = await honest()
      for (const name of ['publicKey', 'signature'] as const) {
        const bytes = claim[name]
        const others = [bytes.subarray(1), bytes.subarray(0, -1), extended(bytes, 1), extended(bytes, bytes.length)]
        for (const other of others) {
          if (other.length === bytes.length) continue
          if (name === 'signature' && otherSignatureBytes.includes(other.length)) continue
          await assertNotProven({ ...claim, [name]: other }, subject, `a ${name} of ${other.length} bytes`)
        }
      }
      await assertNotProven({ ...claim, signature: new Uint8Array() }, subject, 'an empty signature')
      if (claim.publicKey.length === 0) return
      await assertNotProven({ ...claim, publicKey: new Uint8Array() }, subject, 'an empty public key')
    })

    test('keys and signatures that take no secret to write down prove nothing', async () => {
      const claim = await claimOf(await makeWallet())
      const fill = (bytes: Uint8Array, value: number): Uint8Array => new Uint8Array(bytes.length).fill(value)
      for (const value of [0, 1, 0xff]) {
        const signature = fill(claim.signature, value)
        await assertRefused({ ...claim, signature }, `a signature of bytes ${value}`)
        if (claim.publicKey.length === 0) continue
        const publicKey = fill(claim.publicKey, value)
        await assertRefused({ ...claim, publicKey, signature, address: undefined }, `a key of bytes ${value}`)
      }
      // Ed25519: with the identity as key and R, and 0 as S, the equation holds for every message.
      const identity = Uint8Array.of(1, ...new Uint8Array(31))
      const signature = extended(identity, 32)
      await assertRefused({ ...claim, publicKey: identity, signature, address: undefined }, 'the identity key')
    })

    test("another wallet's address is refused, and is ADDRESS_MISMATCH if the proof has the key", async () => {
      const [wallet, other] = [await makeWallet(), await makeWallet()]
      const claim = await claimOf(wallet)
      const { refused } = await judge({ ...claim, address: other.address })
      // With addresses only, a wrong address looks like a wrong signature.
      const mayBeInvalid = claim.publicKey.length === 0 && refused === 'SIGNATURE_INVALID'
      if (!mayBeInvalid) assert.equal(refused, 'ADDRESS_MISMATCH')
    })

    test('an address that is empty, cut or misspelt is refused', async () => {
      const claim = await claimOf(await makeWallet())
      const { address } = await proven(claim)
      for (const wrong of ['', ' ', '-', address.slice(1), address.slice(0, -1), `${address}0`, ...misspelt(address)]) {
        await assertRefused({ ...claim, address: wrong }, `the address ${JSON.stringify(wrong)}`)
      }
    })

    test('readAddress makes every spelling of an address the one that identities have', async () => {
      const { address } = await makeWallet()
      for (const each of [address, ...spellings(address)]) assert.equal(adapter.readAddress(each), address, each)
    })

    test('readAddress makes no other address, and no letter that differs, the same', async () => {
      const [{ address }, other] = [await makeWallet(), await makeWallet()]
      for (const different of [other.address, ...misspelt(address)]) {
        assert.notEqual(adapter.readAddress(different), address, different)
      }
    })

    test('readAddress finds no address in malformed text', async () => {
      const { address } = await makeWallet()
      const longer = [address + address, `${address}0`, `${address}\n`, `${address}\0`]
      const shorter = [address.slice(0, -1), address.slice(1)]
      for (const text of ['', ' ', '\0', '\ud800', '😀', 'x'.repeat(10_000), ...longer, ...shorter]) {
        const mayBeAnothers = !cutAddressIsMalformed && shorter.includes(text)
        if (mayBeAnothers) assert.notEqual(adapter.readAddress(text), address)
        else assert.equal(adapter.readAddress(text), undefined, JSON.stringify(text.slice(0, 80)))
      }
    })

    test('a question to another server that is refused is refused, and is no answer', async () => {
      const claim = await claimOf(await makeWallet())
      const refusal = new CountersignError('RATE_LIMITED', 'too many questions')
      let asked = 0
      const remote: RemoteChecks = {
        async ask() {
          asked++
          throw refusal
        },
      }
      const outcome = await judge(claim, remote).catch((error: unknown) => error)
      if (asked === 0) assert.ok((outcome as Judgement).proven, 'an honest proof is refused')
      else assert.equal(outcome, refusal)
    })

    test('bytes and text of any kind are refused, and nothing but a CountersignError is thrown', async () => {
      const { address } = await makeWallet()
      const lengths = [0, 1, 20, 31, 32, 33, 48, 63, 64, 65, 66, 96, 128, 1024, 8192]
      for (const [i, keyLength] of lengths.entries()) {
        for (const [j, signatureLength] of lengths.entries()) {
          const publicKey = noise(keyLength, `key ${i} ${j}`)
          const signature = noise(signatureLength, `signature ${i} ${j}`)
          const claimed = [address, '', 'x'.repeat(10_000), '\ud800\0'][(i + j) % 4]
          const claim = { message, publicKey, signature, address: claimed }
          await assertRefused(claim, `${keyLength} and ${signatureLength} bytes of noise`)
        }
      }
    })

    describeAdapterTexts(test, options, async (wallet, { address, chainId }, signed, text) => {
      const claim = { ...(await claimOf(wallet, signed)), message: text, address, chainId }
      return (await judge(claim)).proven
    })
  })
}

function bytesOf(hex: string): Uint8Array {
  const bytes = hexToBytes(hex)
  assert.ok(bytes, `a test wallet writes hex, not ${JSON.stringify(hex)}`)
  return bytes
}

/** The bytes with one bit flipped: in each byte once, every bit in turn. */
function* flipped(bytes: Uint8Array): Generator<[index: number, flipped: Uint8Array]> {
  for (const [i, byte] of bytes.entries()) {
    const copy = bytes.slice()
    copy[i] = byte ^ (1 << (i % 8))
    yield [i, copy]
  }
}

/** The text with one letter replaced by another, which differs in more than its case: each letter once. */
function* misspelt(text: string): Generator<string> {
  for (let i = 0; i < text.length; i++) {
    const other = text.charAt(i) === '7' ? '3' : '7'
    yield text.slice(0, i) + other + text.slice(i + 1)
  }
}

function extended(bytes: Uint8Array, by: number): Uint8Array {
  const longer = new Uint8Array(bytes.length + by)
  longer.set(bytes)
  return longer
}

/** Bytes without a pattern, the same for the same seed, so that a failure can be repeated. */
function noise(length: number, seed: string): Uint8Array {
  return new Uint8Array(
    createHash('shake256', { outputLength: Math.max(1, length) })
      .update(seed)
      .digest(),
  ).subarray(0, length)
}

const origin = 'https://app.example:8443'
const form: SignInForm = {
  domain: 'app.example:8443',
  uri: origin,
  statement: 'Sign in on another device.',
  nonce: '0123456789abcdef'.repeat(4),
  issuedAt: Date.UTC(2026, 0, 1),
  expiresAt: Date.UTC(2026, 0, 1, 0, 5),
  resources: [`urn:countersign:sha256:${'A'.repeat(43)}`, 'https://desktop.example'],
}

/** The form with one thing changed at a time. */
const changedForms: readonly (readonly [what: string, form: SignInForm])[] = [
  ['domain', { ...form, domain: 'app.example' }],
  ['uri', { ...form, uri: 'http://app.example:8443' }],
  ['statement', { ...form, statement: 'Sign in.' }],
  ['nonce', { ...form, nonce: form.nonce.replace('0', '1') }],
  ['issuedAt', { ...form, issuedAt: form.issuedAt + 1000 }],
  ['expiresAt', { ...form, expiresAt: form.expiresAt + 1000 }],
  ['first resource', { ...form, resources: form.resources.map((resource) => resource.replace('AA', 'AB')) }],
  ['second resource', { ...form, resources: form.resources.map((resource) => resource.replace('desktop', 'evil')) }],
  ['number of resources', { ...form, resources: form.resources.slice(0, 1) }],
]

/** What is no address or chain, and what would add a line to a text. */
const forged = '\nURI: https://evil.example'

/**
 * Declares tests of an adapter's own texts, if it has them: the sign-in form and the account of a sign order. `judge`
 * resolves with what a wallet's signature over `signed` proves if `text` is the one that counts.
 */
function describeAdapterTexts(
  test: TestRunner['test'],
  { adapter, makeWallet, chainId }: AdapterContractOptions,
  judge: (
    wallet: TestWallet,
    account: WalletAccount,
    signed: string,
    text: string,
  ) => Promise<ProvenIdentity | undefined>,
): void {
  const { signInText, accountId } = adapter
  const accountOf = ({ address }: TestWallet): WalletAccount => ({ address, chainId })

  if (signInText !== undefined) {
    test('its sign-in text says what the form says, and is the same each time', async () => {
      const account = accountOf(await makeWallet())
      const text = signInText(form, account)
      assert.equal(signInText({ ...form }, { ...account }), text)
      for (const value of [form.domain, form.uri, form.statement, form.nonce, ...form.resources]) {
        assert.ok(text.includes(value), `the sign-in text lacks ${value}`)
      }
    })

    test('its sign-in text is another one for another form or another wallet', async () => {
      const [account, other] = [accountOf(await makeWallet()), accountOf(await makeWallet())]
      const text = signInText(form, account)
      for (const [what, changed] of changedForms) {
        assert.notEqual(signInText(changed, account), text, `the sign-in text does not change with the ${what}`)
      }
      assert.notEqual(signInText(form, other), text, 'the sign-in text does not change with the address')
    })

    test('a signature over its sign-in text proves the wallet for that text only', async () => {
      const wallet = await makeWallet()
      const account = accountOf(wallet)
      const text = signInText(form, account)
      const proven = await judge(wallet, account, text, text)
      assert.ok(proven, 'a signature over the sign-in text is refused')
      assert.equal(proven.address, wallet.address)
      for (const [what, changed] of changedForms) {
        const signed = signInText(changed, account)
        assert.equal(await judge(wallet, account, signed, text), undefined, `another ${what} is accepted`)
      }
    })

    test('its sign-in text is for no malformed account', async () => {
      const { address } = await makeWallet()
      for (const wrong of ['', ' ', address + forged, `${address}\0`, `${address}${address}`, 'x'.repeat(10_000)]) {
        assertMalformed(() => signInText(form, { address: wrong, chainId }), `the address ${wrong.slice(0, 99)}`)
      }
      // An adapter that has no chains may ignore the chain.
      const inChain = textOrRefusal(() => signInText(form, { address, chainId: `${chainId ?? ''}${forged}` }))
      assert.ok(!inChain?.includes(forged), 'a chain id adds a line to the sign-in text')
    })
  }

  if (accountId !== undefined) {
    const named = (address: string, chain = chainId): string => {
      assert.ok(chain !== undefined, 'the option chainId is needed: the adapter has accountId')
      return accountId(address, chain)
    }

    test('its account id is that of CAIP-10, the same each time and another one for another wallet', async () => {
      const [{ address }, other] = [await makeWallet(), await makeWallet()]
      assert.match(named(address), /^[-a-z0-9]{3,8}:[-_a-zA-Z0-9]{1,32}:[-.%a-zA-Z0-9]{1,128}$/)
      assert.equal(named(address), named(address))
      assert.notEqual(named(address), named(other.address))
    })

    test('its account id is for no malformed account', async () => {
      const { address } = await makeWallet()
      for (const wrong of ['', ' ', address + forged, `${address}\0`, `${address}${address}`]) {
        assertMalformed(() => named(wrong), `the address ${wrong}`)
      }
      for (const wrong of ['', ' ', `${chainId}${forged}`, `${chainId}\0`]) {
        assertMalformed(() => named(address, wrong), `the chain ${wrong}`)
      }
    })
  }
}

function assertMalformed(make: () => string, what: string): void {
  assert.equal(textOrRefusal(make), undefined, `${what} is accepted`)
}

/** A text; `undefined` if it is refused as malformed. Fails the test for any other refusal. */
function textOrRefusal(make: () => string): string | undefined {
  try {
    return make()
  } catch (error) {
    if (error instanceof CountersignError && error.reason === 'INVALID_REQUEST') return undefined
    throw error
  }
}
