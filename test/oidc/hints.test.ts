import { expect, onTestFinished, test } from 'vitest'
import { makeWallet } from '../support/wallet.ts'
import { fileWith, request, shop, signedIn, startIssuer } from './support.ts'

const [wallet, other, stranger] = [makeWallet(), makeWallet(), makeWallet()]
const compact = (address: string) => address.replaceAll(' ', '')

/** Whether a request without a question is answered for the user who is signed in, by its `login_hint`. */
async function start() {
  const { url, service } = await startIssuer([{ ...shop, first_party: true }], {
    oidc: { email: '{user_id}@users.example' },
    people: fileWith({
      [`nimiq:${wallet.address}`]: { name: 'Ada', email: 'ada@company.example' },
      [`nimiq:${other.address}`]: { name: 'Bob', email: 'bob@company.example' },
    }),
  })
  onTestFinished(() => service.close(0))
  const { browser, config, session } = await signedIn(url, wallet)
  const answered = async (login_hint: string) => {
    const { address } = await request(config, { login_hint, prompt: 'none' })
    const answer = (await browser.open(address)).address.searchParams
    return answer.get('error') ?? answer.has('code')
  }
  return { answered, userId: session.userId as string }
}

test('a hint that names another wallet or user asks for a sign-in, and any other tells nothing about people', async () => {
  const { answered, userId } = await start()
  const own = [userId, 'Ada', 'ada@company.example', compact(wallet.address), wallet.address, `nimiq:${wallet.address}`]
  for (const hint of own) expect([hint, await answered(hint)]).toEqual([hint, true])
  const others = [
    `usr_${'x'.repeat(22)}`,
    compact(other.address),
    compact(stranger.address),
    `nimiq:${compact(stranger.address)}`,
    `ed25519:${wallet.publicKeyHex}`,
  ]
  for (const hint of others) expect([hint, await answered(hint)]).toEqual([hint, 'login_required'])
  const ofPeople = ['Bob', 'bob@company.example', `usr_${'x'.repeat(22)}@users.example`]
  for (const hint of [
    ...ofPeople,
    '',
    'eve',
    'eve@elsewhere.example',
    '42',
    '<script>',
    'mailto:eve@elsewhere.example',
  ]) {
    expect([hint, await answered(hint)]).toEqual([hint, true])
  }
})
