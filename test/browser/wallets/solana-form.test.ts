import { createSignInMessageText } from '@solana/wallet-standard-util'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { readSolanaForm, withAddress } from '../../../src/browser/wallets/solana-wallet.ts'
import { formText } from '../../../src/core/wallet/sign-in-form.ts'
import type { SignInForm } from '../../../src/core/wallet/wallet.ts'

const form: SignInForm = {
  domain: 'app.example:8443',
  uri: 'https://app.example:8443',
  statement: 'Sign in on another device.',
  nonce: 'ab'.repeat(32),
  issuedAt: Date.UTC(2026, 0, 1),
  expiresAt: Date.UTC(2026, 0, 1, 0, 5),
  resources: ['urn:countersign:sha256:47DEQpj8HBSa-_TImW-5JCeuQeRkm5NMpJWZG3hSuFU', 'https://shop.example'],
}
const address = 'GmaDrppBC7P5ARKV8g3djiwP89vz1jLK23V2GBjuAEGB'

describe('a form of the service', () => {
  test('is read so that the library of Solana writes it again, byte for byte', () => {
    const times = fc.integer({ min: 0, max: Date.UTC(2200, 0) })
    const forms = fc.record({
      issuedAt: times,
      expiresAt: times,
      resources: fc.subarray([...form.resources], { minLength: 1 }),
      domain: fc.constantFrom('localhost:8080', '[::1]', 'xn--bcher-kva.example', 'app.example'),
    })
    const chains = fc.constantFrom(undefined, 'mainnet', 'solana:devnet')
    fc.assert(
      fc.property(forms, chains, (changes, chainId) => {
        const text = formText('Solana', { ...form, ...changes }, { address, chainId })
        const input = readSolanaForm(text)!
        expect(createSignInMessageText({ ...input, address: input.address! })).toBe(text)
        expect('chainId' in input).toBe(chainId !== undefined)
      }),
    )
  })

  test('without an address leaves it to the wallet', () => {
    const text = formText('Solana', form, { address: '', chainId: 'mainnet' })
    const input = readSolanaForm(text)!
    expect('address' in input).toBe(false)
    expect(createSignInMessageText({ ...input, address })).toBe(withAddress(text, address))
    expect(withAddress(text, address)).toBe(formText('Solana', form, { address, chainId: 'mainnet' }))
    expect(withAddress(withAddress(text, address), 'another')).toBe(withAddress(text, address))
  })
})

test.each([
  ['the plain text of a sign order', 'Tally requests approval\nAction: order.approve\nOrigin: https://app.example'],
  ['a form of Ethereum', formText('Ethereum', form, { address: '0x00', chainId: '1' })],
  ['a form with a line more', `${formText('Solana', form, { address })}\n- https://a\nTitle: x`],
  ['a form with a line less', formText('Solana', form, { address }).replace('Version: 1\n', '')],
  [
    'a form with its lines in another order',
    formText('Solana', form, { address }).replace(/(URI.*)\n(Version.*)/, '$2\n$1'),
  ],
  ['a form within another text', `x\n${formText('Solana', form, { address })}`],
  ['nothing', ''],
])('%s is not taken for one', (_, text) => {
  expect(readSolanaForm(text)).toBeUndefined()
})
