import { parseSignInMessageText } from '@solana/wallet-standard-util'
import { describe, expect, test } from 'vitest'
import { type RestAnswer, rest } from '../../support/rest.ts'
import { startService } from '../../support/service.ts'
import { makeSolanaWallet, type SolanaWallet } from '../../support/solana.ts'

const appOrigin = 'https://app.example'
const fromApp = { origin: appOrigin }
const wallet = makeSolanaWallet()

async function start(): Promise<string> {
  const trustedOrigins = [appOrigin, 'https://other.example']
  return (await startService({ adapters: ['nimiq', 'solana'], trustedOrigins })).url
}

const proofOf = ({ publicKeyHex }: SolanaWallet, signed: string | Uint8Array) => ({
  adapterId: 'solana',
  publicKeyHex,
  signatureHex: wallet.sign(signed),
})

/** A version 1 off-chain message, as hardware wallets sign it. */
const offChain = ({ publicKey }: SolanaWallet, text: string): Uint8Array =>
  Buffer.concat([
    Uint8Array.of(0xff),
    Buffer.from('solana offchain'),
    Uint8Array.of(1, 1),
    publicKey,
    Buffer.from(text),
  ])

describe('over REST a Solana wallet', () => {
  test('signs in over the text that the nonce has, if the page names its address', async () => {
    const url = await start()
    const { address, publicKeyHex } = wallet
    const named = { adapterId: 'solana', address, chainId: 'mainnet' }
    const { json: challenge } = await rest(url, '/wallet/nonce', named, fromApp)
    expect(parseSignInMessageText(challenge.message)).toMatchObject({
      domain: 'app.example',
      address,
      chainId: 'mainnet',
    })
    const { nonceId, message } = challenge
    const { status, json } = await rest(
      url,
      '/wallet/verify',
      { nonceId, ...proofOf(wallet, message), address, chainId: 'mainnet' },
      fromApp,
    )
    expect(status).toBe(200)
    expect(json.session).toMatchObject({ adapterId: 'solana', publicKeyHex, address })
  })

  test('signs in if its address is known only when it has signed, with a hardware wallet too', async () => {
    const url = await start()
    const users = new Set<string>()
    for (const around of [(text: string) => text, (text: string) => offChain(wallet, text)]) {
      const { json: challenge } = await rest(url, '/wallet/nonce', { adapterId: 'solana' }, fromApp)
      const { nonceId, message } = challenge
      const [first, empty, ...lines] = message.split('\n')
      expect(empty).toBe('')
      const text = [first, wallet.address, ...lines].join('\n')
      const { status, json } = await rest(url, '/wallet/verify', { nonceId, ...proofOf(wallet, around(text)) }, fromApp)
      expect(status).toBe(200)
      users.add(json.session.userId)
    }
    expect(users.size).toBe(1)
  })

  test('signs in with nothing that it signed for another page, over the plain text, or twice', async () => {
    const url = await start()
    const { address } = wallet
    const begin = async (): Promise<RestAnswer['json']> =>
      (await rest(url, '/wallet/nonce', { adapterId: 'solana', address }, fromApp)).json
    const verify = async (nonceId: string, signed: string, headers = fromApp): Promise<RestAnswer> =>
      await rest(url, '/wallet/verify', { nonceId, ...proofOf(wallet, signed) }, headers)

    const forOther = await begin()
    const phished = forOther.message.replaceAll('app.example', 'other.example')
    expect((await verify(forOther.nonceId, phished)).json.code).toBe('SIGNATURE_INVALID')

    const { json: plain } = await rest(url, '/wallet/nonce', {}, fromApp)
    expect((await verify(plain.nonceId, plain.message)).json.code).toBe('SIGNATURE_INVALID')

    const carried = await begin()
    const elsewhere = await verify(carried.nonceId, carried.message, { origin: 'https://other.example' })
    expect(elsewhere.json.code).toBe('ORIGIN_MISMATCH')

    const once = await begin()
    expect((await verify(once.nonceId, once.message)).status).toBe(200)
    expect((await verify(once.nonceId, once.message)).json.code).toBe('NONCE_NOT_FOUND')
  })

  test('is told that an address or a chain is malformed before it signs', async () => {
    const url = await start()
    for (const wrong of [{ address: '1'.repeat(32) }, { address: wallet.publicKeyHex }, { chainId: 'mainnet-beta' }]) {
      const { status, json } = await rest(url, '/wallet/nonce', { adapterId: 'solana', ...wrong }, fromApp)
      expect([status, json.code]).toEqual([400, 'INVALID_REQUEST'])
    }
    const order = { kind: 'sign', adapterId: 'solana', expectedAddress: '1'.repeat(32) }
    const { status, json } = await rest(url, '/cross-device/start', order, fromApp)
    expect([status, json.code]).toEqual([400, 'INVALID_REQUEST'])
  })

  /** Starts an order at the desktop and claims it at the phone, which then reads the challenge for a wallet. */
  async function claimed(url: string, order: object, named: Record<string, string>) {
    const { json: started } = await rest(url, '/cross-device/start', order, fromApp)
    const { orderId, claimToken, desktopToken } = started
    const { json: claim } = await rest(url, '/cross-device/claim', { orderId, claimToken })
    const { challengeToken } = claim
    const query = new URLSearchParams({ orderId, challengeToken, ...named })
    const { json: challenge } = await rest(url, `/cross-device/challenge?${query}`, undefined, { origin: url })
    return { orderId, challengeToken, desktopToken, challenge }
  }

  test('approves a login order on the service’s own page, over a text that names that page and the desktop’s', async () => {
    const url = await start()
    const { address } = wallet
    const { orderId, challengeToken, desktopToken, challenge } = await claimed(
      url,
      { kind: 'login' },
      { adapterId: 'solana', address, chainId: 'solana:mainnet' },
    )
    const parsed = parseSignInMessageText(challenge.message)!
    expect(parsed).toMatchObject({ domain: new URL(url).host, uri: url, address, chainId: 'solana:mainnet' })
    expect(parsed.resources).toEqual([expect.stringMatching(/^urn:countersign:sha256:/), appOrigin])

    const approve = async (signed: string | Uint8Array) => {
      const proof = { ...proofOf(wallet, signed), address, chainId: 'solana:mainnet' }
      return await rest(url, '/cross-device/approve', { orderId, challengeToken, proof }, { origin: url })
    }
    const forApp = challenge.message.replaceAll(url, appOrigin).replace(new URL(url).host, 'app.example')
    expect((await approve(forApp)).json.code).toBe('SIGNATURE_INVALID')
    expect((await approve(offChain(wallet, challenge.message))).json).toMatchObject({ status: 'approved' })
    const { json } = await rest(url, '/cross-device/finalize', { orderId, desktopToken }, fromApp)
    expect(json.session).toMatchObject({ adapterId: 'solana', address })
  })

  test('approves a sign order over the plain text, with its account if the phone named it', async () => {
    const url = await start()
    const { address, publicKeyHex } = wallet
    const order = { kind: 'sign', adapterId: 'solana', expectedAddress: address, payload: '{"amount":5}' }
    for (const named of [{}, { adapterId: 'solana', address, chainId: 'devnet' }]) {
      const { orderId, challengeToken, desktopToken, challenge } = await claimed(url, order, named)
      const { message } = challenge
      const lastLine = message.split('\n').at(-1)
      if ('chainId' in named) expect(lastLine).toBe(`Account: solana:EtWTRABZaYq6iMfeYKouRu166VU2xqa1:${address}`)
      else expect(message).not.toContain('Account: ')
      const proof = { ...proofOf(wallet, message), ...named }
      const { json } = await rest(url, '/cross-device/approve', { orderId, challengeToken, proof })
      expect(json).toMatchObject({ status: 'approved' })
      const { json: finalized } = await rest(url, '/cross-device/finalize', { orderId, desktopToken }, fromApp)
      const signed = { adapterId: 'solana', publicKeyHex, address, message, payload: '{"amount":5}' }
      expect(finalized.proofArtifact).toMatchObject(signed)
    }
    const { orderId, challengeToken, challenge } = await claimed(url, order, {})
    const other = makeSolanaWallet()
    const proof = { adapterId: 'solana', publicKeyHex: other.publicKeyHex, signatureHex: other.sign(challenge.message) }
    const { json } = await rest(url, '/cross-device/approve', { orderId, challengeToken, proof })
    expect(json.code).toBe('WRONG_WALLET')
  })
})
