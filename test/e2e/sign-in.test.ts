import { expect, test } from 'vitest'
import { type SignInClient, signInClients } from '../support/clients.ts'
import { rest } from '../support/rest.ts'
import { startService } from '../support/service.ts'
import { makeWallet, proofOf } from '../support/wallet.ts'

test.each(Object.entries(signInClients))('a Nimiq wallet signs in over %s', async (_name, makeClient) => {
  const { url } = await startService({ appName: 'Café ☕ Zürich' })
  const client: SignInClient = makeClient(url)
  const wallet = makeWallet()

  const challenge = await client.issueNonce()
  expect(challenge.message.split('\n').slice(0, 3)).toEqual([
    'Café ☕ Zürich requests authentication',
    'Action: auth.login',
    `Origin: ${challenge.origin}`,
  ])
  const result = await client.verify(proofOf(wallet, challenge))

  expect(result).toMatchObject({ ok: true, address: wallet.address })
  expect(result.authToken).toBe(result.token)
  expect(result.cookie).toMatch(/^countersign_session=css_[^;]+; Max-Age=\d+; Path=\/; HttpOnly; SameSite=Lax$/)
  const { json } = await rest(url, '/session', undefined, { authorization: `Bearer ${result.token}` })
  expect(json.session).toMatchObject({
    adapterId: 'nimiq',
    publicKeyHex: wallet.publicKeyHex,
    address: wallet.address,
    current: true,
  })
})

test.each([
  ['grouped', (address: string) => address],
  ['unspaced', (address: string) => address.replaceAll(' ', '')],
  ['lower-case', (address: string) => address.toLowerCase()],
  ['lower-case and unspaced', (address: string) => address.toLowerCase().replaceAll(' ', '')],
])('an address that derives from the key is accepted: %s', async (_name, spell) => {
  const { url } = await startService()
  const wallet = makeWallet()
  const { json: challenge } = await rest(url, '/wallet/nonce', {})
  const { json } = await rest(url, '/wallet/verify', {
    ...proofOf(wallet, challenge),
    address: spell(wallet.address),
  })
  expect(json).toMatchObject({ ok: true, session: { address: wallet.address } })
})

test('100 parallel verifies of one nonce make one session', async () => {
  const { url } = await startService()
  const wallet = makeWallet()
  const { json: challenge } = await rest(url, '/wallet/nonce', {})
  const proof = proofOf(wallet, challenge)
  const answers = await Promise.all(Array.from({ length: 100 }, () => rest(url, '/wallet/verify', proof)))
  const winners = answers.filter(({ status }) => status === 200)
  expect(winners).toHaveLength(1)
  expect(new Set(answers.filter(({ status }) => status !== 200).map(({ json }) => json.code))).toEqual(
    new Set(['NONCE_NOT_FOUND']),
  )
  const authorization = `Bearer ${winners[0]!.json.token}`
  const { json } = await rest(url, '/sessions', undefined, { authorization })
  expect(json.sessions).toHaveLength(1)
})
