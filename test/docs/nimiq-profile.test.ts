import { createHash } from 'node:crypto'
import { PublicKey, Signature } from '@nimiq/core'
import { expect, test } from 'vitest'
import { nativeVerifier } from '../../src/core/wallet/native.ts'
import { nimiq } from '../../src/core/wallet/nimiq.ts'
import { readFromRoot } from '../support/repository.ts'
import { rest } from '../support/rest.ts'
import { startService } from '../support/service.ts'
import { blocksOf } from './blocks.ts'

const blocks = blocksOf(await readFromRoot('docs/nimiq-profile.md'))
const message = blocks.find(({ language }) => language === 'text')!.text.replace(/\n$/, '')
const { publicKeyHex, signatureHex } = JSON.parse(blocks.find(({ language }) => language === 'json')!.text)

test("the example's signature holds by Nimiq's own library and by the adapter, and its text names the key's address", () => {
  const input = Buffer.from(message)
  const framed = Buffer.concat([Buffer.from(`\x16Nimiq Signed Message:\n${input.length}`), input])
  const digest = createHash('sha256').update(framed).digest()
  expect(PublicKey.fromHex(publicKeyHex).verify(Signature.fromHex(signatureHex), digest)).toBe(true)
  const proven = nimiq.verify(message, { publicKeyHex, signatureHex }, nativeVerifier)
  const { address } = proven as { address: string }
  expect(message.split('\n')[1]).toBe(address.replaceAll(' ', ''))
  expect(nimiq.verify(`${message}\n`, { publicKeyHex, signatureHex }, nativeVerifier)).toBeUndefined()
})

test('a proof over it signs no one in', async () => {
  const { url } = await startService()
  const { json } = await rest(url, '/wallet/nonce', {})
  const answer = await rest(url, '/wallet/verify', { nonceId: json.nonceId, publicKeyHex, signatureHex })
  expect([answer.status, answer.json.code]).toEqual([401, 'SIGNATURE_INVALID'])
})
