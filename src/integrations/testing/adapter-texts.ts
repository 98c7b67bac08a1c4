import assert from 'node:assert/strict'
import type { ProvenIdentity, SignInForm, WalletAccount, WalletAdapter } from '../../core/wallet/wallet.ts'
import { CountersignError } from '../../shared/errors.ts'
import type { TestRunner } from './runner.ts'
import type { TestWallet } from './wallet.ts'

/** What the tests of an adapter's texts need. */
export interface AdapterTexts {
  readonly adapter: WalletAdapter
  readonly makeWallet: () => TestWallet | Promise<TestWallet>
  readonly chainId: string | undefined
  /** What a wallet's signature over `signed` proves if `text` is the one that counts. `undefined`: nothing. */
  readonly judge: (wallet: TestWallet, account: WalletAccount, signed: string, text: string) => Promise<Judged>
}

type Judged = ProvenIdentity | undefined

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

/** What nobody's address or chain is, and what would add a line to a text. */
const forged = '\nURI: https://evil.example'

/** Declares tests of an adapter's own texts, as far as it has any: the sign-in form and the account of a sign order. */
export function describeAdapterTexts({ test }: TestRunner, options: AdapterTexts): void {
  const { adapter, makeWallet, chainId, judge } = options
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
