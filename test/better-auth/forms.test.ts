import { describe, expect, test } from 'vitest'
import { Signer } from '../core/order/support.ts'
import { makeComputer, type TestComputer } from '../support/computer.ts'
import { memoryStore } from '../support/memory-store.ts'
import { type AccountWallet, accountAdapter, makeAccountWallet } from './account-wallet.ts'
import { type Answer, answered, bearerOf, call, codeOf, countRows, linkProofOf, ownOrigin, signIn } from './calls.ts'
import { type Auth, type AuthServerOptions, makeAuth } from './support.ts'

const adapters = ['ed25519', accountAdapter] as const

async function makeWithForms(options: AuthServerOptions = {}): Promise<Auth> {
  const withAdapters = { adapters: [...adapters] }
  return await makeAuth({
    ...options,
    wallet: { ...withAdapters, ...options.wallet },
    orders: { ...withAdapters, ...options.orders },
  })
}

async function nonceFor(auth: Auth, { account }: AccountWallet): Promise<{ nonceId: string; message: string }> {
  return await answered(call(auth, '/wallet/nonce', account))
}

async function signInWith(auth: Auth, wallet: AccountWallet): Promise<Answer> {
  const { nonceId, message } = await nonceFor(auth, wallet)
  return await call(auth, '/wallet/verify', { nonceId, ...wallet.prove(message) })
}

async function linkWith(auth: Auth, wallet: AccountWallet, headers: Record<string, string>): Promise<Answer> {
  const { nonceId, message } = await answered(
    call(auth, '/wallet/nonce', { purpose: 'link', ...wallet.account }, headers),
  )
  expect(message).toContain('\nAdd this wallet to your account.\n')
  return await call(auth, '/wallet/link', { nonceId, ...wallet.prove(message) }, headers)
}

/** An order whose challenge was read for a wallet. */
async function readFor(auth: Auth, { account }: AccountWallet, start: object = {}, desktop = ownOrigin) {
  const started = await answered(call(auth, '/cross-device/start', { kind: 'login', ...start }, { origin: desktop }))
  const { orderId, claimToken, desktopToken } = started
  const { challengeToken } = await answered(call(auth, '/cross-device/claim', { orderId, claimToken }))
  const query = new URLSearchParams({ orderId, ...account })
  const authorization = `Bearer ${challengeToken}`
  const challenge = await answered(call(auth, `/cross-device/challenge?${query}`, undefined, { authorization }))
  return { desktop: { orderId, desktopToken }, phone: { orderId, challengeToken }, challenge }
}

/** Takes a wallet from its user. */
async function unlink(auth: Auth, wallet: AccountWallet, user: Answer): Promise<void> {
  const { internalAdapter } = await auth.$context
  const account = (await internalAdapter.findAccounts(user.json.session.userId)).find(
    ({ accountId }) => accountId === caip10(wallet).toLowerCase(),
  )
  await answered(call(auth, '/unlink-account', { accountId: account?.id }, bearerOf(user)))
}

const caip10 = ({ account: { address, chainId } }: AccountWallet): string => `eip155:${chainId}:${address}`

describe('a wallet with a form and without a key', () => {
  test('signs in over its form, for the page that calls it, and is one user', async () => {
    const auth = await makeWithForms()
    const wallet = makeAccountWallet()
    const { message } = await nonceFor(auth, wallet)
    const lines = message.split('\n')
    expect(lines.slice(0, 2)).toEqual([
      'localhost:3000 wants you to sign in with your Test account:',
      wallet.account.address,
    ])
    expect(lines).toContain(`URI: ${ownOrigin}`)
    expect(lines).toContain('Chain ID: 1')

    const { json } = await signInWith(auth, wallet)
    expect(json.session).toMatchObject({ adapterId: 'account', publicKeyHex: '', address: caip10(wallet) })
    expect((await signInWith(auth, wallet)).json.session.userId).toBe(json.session.userId)
    const { internalAdapter } = await auth.$context
    expect(await internalAdapter.findAccounts(json.session.userId)).toMatchObject([
      { providerId: 'account', accountId: caip10(wallet).toLowerCase() },
    ])
    const session = await auth.api.getSession({ headers: new Headers(bearerOf({ json } as Answer)) })
    expect(session?.session).toMatchObject({ walletAddress: caip10(wallet), walletPublicKeyHex: '' })
    // The same key on another chain is another wallet.
    const elsewhere = await signInWith(auth, wallet.on('8453'))
    expect(elsewhere.json.session.userId).not.toBe(json.session.userId)
  })

  test('is added to a user, who then signs in with it; is taken for everyone else; and can be unlinked', async () => {
    const auth = await makeWithForms()
    const wallet = makeAccountWallet()
    const [mine, theirs] = [await signIn(auth), await signIn(auth)]
    const linked = await linkWith(auth, wallet, bearerOf(mine))
    expect(linked.json).toEqual({ ok: true, adapterId: 'account', publicKeyHex: '', address: caip10(wallet) })
    expect(codeOf(await linkWith(auth, wallet, bearerOf(theirs)))).toEqual([409, 'WALLET_TAKEN'])
    const { userId } = mine.json.session
    expect((await signInWith(auth, wallet)).json.session.userId).toBe(userId)
    expect((await signInWith(auth, wallet.on('10'))).json.session.userId).not.toBe(userId)
    await unlink(auth, wallet, mine)
    expect((await signInWith(auth, wallet)).json.session.userId).not.toBe(userId)
  })

  test('approves a login over its form', async () => {
    const auth = await makeWithForms()
    const wallet = makeAccountWallet()
    const { desktop, phone, challenge } = await readFor(auth, wallet)
    expect(challenge.message).toContain('\nSign in on another device.\n')
    const approval = await call(auth, '/cross-device/approve', { ...phone, proof: wallet.prove(challenge.message) })
    expect(approval.json).toMatchObject({ status: 'approved' })
    const { session } = await answered(call(auth, '/cross-device/finalize', desktop))
    expect(session).toMatchObject({ adapterId: 'account', publicKeyHex: '', address: caip10(wallet) })
    expect((await signInWith(auth, wallet)).json.session.userId).toBe(session.userId)
  })
})

test('the form names the page that calls the wallet, and the origin of the order beside it', async () => {
  const app = 'https://app.example'
  const auth = await makeWithForms({ auth: { trustedOrigins: [app] } })
  const wallet = makeAccountWallet()
  const { phone, challenge } = await readFor(auth, wallet, {}, app)
  const lines = challenge.message.split('\n')
  expect(lines[0]).toBe('localhost:3000 wants you to sign in with your Test account:')
  expect(lines).toContain(`URI: ${ownOrigin}`)
  expect(lines.at(-1)).toBe(`- ${app}`)
  // Signed on one page, it approves on no other.
  const approval = { ...phone, proof: wallet.prove(challenge.message) }
  const elsewhere = await call(auth, '/cross-device/approve', approval, { origin: app })
  expect(codeOf(elsewhere)).toEqual([401, 'SIGNATURE_INVALID'])
  expect(codeOf(await call(auth, '/cross-device/approve', approval))).toEqual([200, undefined])
})

test('a sign order’s text and proof name the account', async () => {
  const auth = await makeWithForms()
  const wallet = makeAccountWallet()
  const { desktop, phone, challenge } = await readFor(auth, wallet, { kind: 'sign' })
  expect(challenge.message.split('\n').at(-1)).toBe(`Account: ${caip10(wallet)}`)
  const proof = wallet.prove(challenge.message)
  await answered(call(auth, '/cross-device/approve', { ...phone, proof }))
  const { proofArtifact } = await answered(call(auth, '/cross-device/finalize', desktop))
  expect(proofArtifact).toMatchObject({ message: challenge.message, address: caip10(wallet), publicKeyHex: '' })
})

test('an account that no wallet can have, or an adapter that is not there, gets no challenge, and stores nothing', async () => {
  const auth = await makeWithForms()
  const { address } = makeAccountWallet().account
  for (const [account, code] of [
    [{ adapterId: 'account', chainId: '1' }, 'INVALID_REQUEST'],
    [{ adapterId: 'account', address, chainId: '0x1' }, 'INVALID_REQUEST'],
    [{ adapterId: 'account', address: '0x', chainId: '1' }, 'INVALID_REQUEST'],
    [{ adapterId: 'other', address, chainId: '1' }, 'ADAPTER_UNKNOWN'],
  ] as const) {
    expect(codeOf(await call(auth, '/wallet/nonce', account))).toEqual([400, code])
  }
  expect(await countRows(auth, ['verification'])).toEqual([0])
})

test('neither sign-in nor link nor login order takes a signature over the plain text, for another page or another account', async () => {
  const other = 'https://app.example'
  const auth = await makeWithForms({ auth: { trustedOrigins: [other] } })
  const wallet = makeAccountWallet()
  const user = bearerOf(await signIn(auth))
  const login = await answered(call(auth, '/wallet/nonce', wallet.account, { origin: other }))
  for (const change of [
    (form: string) => form.replace('localhost:3000', 'evil.example'),
    (form: string) => form.replace('Chain ID: 1', 'Chain ID: 10'),
    (form: string) => form.replace(/Nonce: ./, (text) => (text.endsWith('z') ? 'Nonce: y' : 'Nonce: z')),
    () => login.message,
  ]) {
    const direct = await nonceFor(auth, wallet)
    const verified = await call(auth, '/wallet/verify', { ...direct, ...wallet.prove(change(direct.message)) })
    expect(codeOf(verified)).toEqual([401, 'SIGNATURE_INVALID'])
    const purpose = { purpose: 'link', ...wallet.account }
    const link = await answered(call(auth, '/wallet/nonce', purpose, user))
    const linked = await call(auth, '/wallet/link', { ...link, ...wallet.prove(change(link.message)) }, user)
    expect(codeOf(linked)).toEqual([401, 'SIGNATURE_INVALID'])
    const { phone, challenge } = await readFor(auth, wallet)
    const approval = { ...phone, proof: wallet.prove(change(challenge.message)) }
    expect(codeOf(await call(auth, '/cross-device/approve', approval))).toEqual([401, 'SIGNATURE_INVALID'])
  }
  // The plain text, which is what is asked for without an account.
  const { nonceId, message } = await answered(call(auth, '/wallet/nonce', {}))
  expect(message).toMatch(/^App requests authentication\n/)
  const plain = await call(auth, '/wallet/verify', { nonceId, ...wallet.prove(message) })
  expect(codeOf(plain)).toEqual([401, 'SIGNATURE_INVALID'])
  // A signature for one chain is none for another.
  const named = await nonceFor(auth, wallet)
  const moved = { nonceId: named.nonceId, ...wallet.prove(named.message), chainId: '10' }
  expect(codeOf(await call(auth, '/wallet/verify', moved))).toEqual([401, 'SIGNATURE_INVALID'])
})

describe('a computer that is known for a wallet without a key', () => {
  async function start(): Promise<Auth> {
    const store = await memoryStore()
    return await makeWithForms({ orders: { confirmationCode: 'return', store } })
  }

  /** Signs in with a phone; the answer to the desktop, and whether it took a code. */
  async function signInFrom(auth: Auth, computer: TestComputer, wallet: AccountWallet, rememberComputer = false) {
    const { desktop, phone, challenge } = await readFor(auth, wallet, { computerKey: computer.key })
    const approval = { ...phone, proof: wallet.prove(challenge.message), rememberComputer }
    const { returnCode } = await answered(call(auth, '/cross-device/approve', approval))
    const computerProof = await computer.prove(desktop)
    const answer = await call(auth, '/cross-device/finalize', { ...desktop, returnCode, computerProof })
    expect(answer.status).toBe(200)
    return { answer, isKnown: returnCode === undefined }
  }

  const listed = async (auth: Auth, answer: Answer) =>
    (await answered(call(auth, '/computers', undefined, bearerOf(answer)))).computers

  test('needs no code, is listed and can be forgotten', async () => {
    const auth = await start()
    const [computer, wallet] = [await makeComputer(), makeAccountWallet()]
    const first = await signInFrom(auth, computer, wallet, true)
    expect(first.isKnown).toBe(false)
    const second = await signInFrom(auth, computer, wallet)
    expect(second.isKnown).toBe(true)
    expect((await signInFrom(auth, computer, wallet.on('10'))).isKnown).toBe(false)
    const [known] = await listed(auth, second.answer)
    expect(known).toMatchObject({ current: true })
    await answered(call(auth, '/computers/forget', { id: known.id }, bearerOf(second.answer)))
    expect((await signInFrom(auth, computer, wallet)).isKnown).toBe(false)
  })

  test('is listed for a user who signed in with another of their wallets, and forgotten once this one is unlinked', async () => {
    const auth = await start()
    const [computer, wallet] = [await makeComputer(), makeAccountWallet()]
    const mine = await signIn(auth, new Signer())
    await answered(linkWith(auth, wallet, bearerOf(mine)))
    await signInFrom(auth, computer, wallet, true)
    expect(await listed(auth, mine)).toHaveLength(1)
    await unlink(auth, wallet, mine)
    expect((await signInFrom(auth, computer, wallet)).isKnown).toBe(false)
  })

  test('is forgotten once the other sessions are revoked', async () => {
    const auth = await start()
    const [computer, wallet] = [await makeComputer(), makeAccountWallet()]
    await signInFrom(auth, computer, wallet, true)
    const direct = await signInWith(auth, wallet)
    await answered(call(auth, '/revoke-other-sessions', {}, bearerOf(direct)))
    expect((await signInFrom(auth, computer, wallet)).isKnown).toBe(false)
  })
})

test('a user whose wallet has no key keeps no key of another one', async () => {
  const auth = await makeWithForms({ wallet: { syncAddressToUser: true, syncPublicKeyToUser: true } })
  const [signer, wallet] = [new Signer(), makeAccountWallet()]
  const mine = await signIn(auth, signer)
  const user = async () => (await auth.api.getSession({ headers: new Headers(bearerOf(mine)) }))?.user
  expect(await user()).toMatchObject({ walletPublicKeyHex: signer.publicKeyHex })
  await answered(linkWith(auth, wallet, bearerOf(mine)))
  expect(await user()).toMatchObject({ walletAddress: caip10(wallet), walletPublicKeyHex: '' })
})

test('wallets without a form sign in as before, beside those with one', async () => {
  const auth = await makeWithForms()
  const mine = await signIn(auth, new Signer())
  expect(mine.status).toBe(200)
  const second = new Signer()
  const proof = await linkProofOf(auth, second, bearerOf(mine))
  expect(codeOf(await call(auth, '/wallet/link', proof, bearerOf(mine)))).toEqual([200, undefined])
})
