import { createHash } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { nativeVerifier } from '../../../src/core/wallet/native.ts'
import { ed25519 } from '../../../src/core/wallet/nimiq.ts'
import { Prover } from '../../../src/core/wallet/prover.ts'
import { formText, type StoredChallenge, signInForm } from '../../../src/core/wallet/sign-in-form.ts'
import type { WalletAdapter } from '../../../src/core/wallet/wallet.ts'
import { CountersignError } from '../../../src/shared/errors.ts'

const issuedAt = Date.UTC(2026, 10, 22, 12)
const nonce: StoredChallenge = {
  action: 'auth.login',
  nonce: Buffer.from(Array.from({ length: 32 }, (_, index) => index)).toString('base64url'),
  origin: 'https://app.example',
  issuedAt,
  expiresAt: issuedAt + 300_000,
  message: 'Example requests authentication\nAction: auth.login\nhéllo',
}
const order: StoredChallenge = { ...nonce, orderId: 'order-1', message: 'Example requests approval' }

/** A wallet with a form, which names the account that it is given. */
const withForm: WalletAdapter = {
  id: 'formal',
  displayName: 'Formal',
  signInText: (form, { address = 'nobody', chainId }) => formText('Formal', form, { address, chainId }),
  accountId(address, chainId) {
    if (chainId !== '1') throw new CountersignError('INVALID_REQUEST', 'chain_id must be 1')
    return `formal:${chainId}:${address}`
  },
  // Proves whatever text it is given: the tests look at the text.
  verify: (_message, { address = '' }) => ({ adapterId: 'formal', subject: address, publicKeyHex: '', address }),
  readAddress: (text) => text,
}
const prover = new Prover([ed25519, withForm], nativeVerifier)
const account = { adapterId: 'formal', address: 'alice', chainId: '1' }

describe('a sign-in form', () => {
  test('binds the plain text by its hash, and names the page, the nonce and the times', () => {
    const text = prover.textFor(nonce, account, 'https://app.example')
    const hash = createHash('sha256').update(nonce.message).digest('base64url')
    expect(text).toBe(
      [
        'app.example wants you to sign in with your Formal account:',
        'alice',
        '',
        'Sign in.',
        '',
        'URI: https://app.example',
        'Version: 1',
        'Chain ID: 1',
        'Nonce: 000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f',
        'Issued At: 2026-11-22T12:00:00.000Z',
        'Expiration Time: 2026-11-22T12:05:00.000Z',
        'Resources:',
        `- urn:countersign:sha256:${hash}`,
      ].join('\n'),
    )
  })

  test('of an order names the origin that started it, beside the page that approves it', () => {
    const { domain, uri, resources } = signInForm(order, 'https://sign.example:8443')
    expect({ domain, uri }).toEqual({ domain: 'sign.example:8443', uri: 'https://sign.example:8443' })
    expect(resources.slice(1)).toEqual(['https://app.example'])
    expect(signInForm(nonce, 'https://app.example').resources).toHaveLength(1)
  })

  test('says what it is for in words that EIP-4361 and wallets allow, and differently for each purpose', () => {
    const statements = [nonce, { ...nonce, action: 'auth.link' as const }, order].map(
      (challenge) => signInForm(challenge, 'https://app.example').statement,
    )
    expect(new Set(statements).size).toBe(3)
    for (const statement of statements) expect(statement).toMatch(/^[A-Za-z .]+$/)
  })

  test('is another text for another plain text, page, account or chain', () => {
    const texts = [
      prover.textFor(nonce, account, 'https://app.example'),
      prover.textFor({ ...nonce, message: `${nonce.message}.` }, account, 'https://app.example'),
      prover.textFor(nonce, account, 'https://evil.example'),
      prover.textFor(nonce, { ...account, address: 'mallory' }, 'https://app.example'),
      prover.textFor(nonce, { ...account, chainId: '2' }, 'https://app.example'),
    ]
    expect(new Set(texts).size).toBe(texts.length)
  })
})

describe('the text that a wallet signs', () => {
  test('is the plain text if no wallet is named, and for adapters without a form', () => {
    for (const challenge of [nonce, order]) {
      expect(prover.textFor(challenge, {}, 'https://app.example')).toBe(challenge.message)
      const named = { adapterId: 'ed25519', address: 'alice', chainId: '1' }
      expect(prover.textFor(challenge, named, 'https://app.example')).toBe(challenge.message)
    }
  })

  test('of a sign order is the plain text, with the account last if address and chain are named', () => {
    const sign = { ...order, action: 'order.approve' as const }
    expect(prover.textFor(sign, account, 'https://app.example')).toBe(`${order.message}\nAccount: formal:1:alice`)
    expect(prover.textFor(sign, { adapterId: 'formal' }, 'https://app.example')).toBe(order.message)
    expect(prover.textFor(sign, { adapterId: 'formal', address: 'alice' }, 'https://app.example')).toBe(order.message)
    expect(() => prover.textFor(sign, { ...account, chainId: '2' }, 'https://app.example')).toThrow('chain_id')
  })

  test('is made of the proof’s own account when the proof is checked', async () => {
    const proof = { ...account, publicKeyHex: '', signatureHex: '00' }
    const { identity, text } = await prover.prove(nonce, proof, { pageOrigin: 'https://app.example' })
    expect(identity.address).toBe('alice')
    expect(text).toBe(prover.textFor(nonce, account, 'https://app.example'))
  })

  test('is for a configured adapter only', () => {
    expect(() => prover.textFor(nonce, { adapterId: 'other' }, 'https://app.example')).toThrow(
      expect.objectContaining({ reason: 'ADAPTER_UNKNOWN' }),
    )
  })
})
