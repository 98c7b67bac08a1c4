import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { stellar } from '../../examples/custom-wallet/stellar.ts'
import { tron } from '../../examples/custom-wallet/tron.ts'
import { nativeVerifier } from '../../src/core/wallet/native.ts'
import { run } from '../support/command.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'

/** Makes wallets and signatures with the chains' own libraries, and prints them. */
const program = `
import { createHash, randomBytes } from 'node:crypto'
import { Keypair } from '@stellar/stellar-sdk'
import { TronWeb, Trx } from 'tronweb'
const texts = ['Example requests authentication\\nNonce: n0nce', 'grüße 你好 😀', '', 'x'.repeat(8192)]
const wallets = Array.from({ length: 8 }, () => {
  const pair = Keypair.random()
  const key = randomBytes(32).toString('hex')
  const hashed = (text) => createHash('sha256').update('Stellar Signed Message:\\n' + text).digest()
  return {
    stellar: {
      publicKeyHex: Buffer.from(pair.rawPublicKey()).toString('hex'),
      address: pair.publicKey(),
      signatures: texts.map((text) => Buffer.from(pair.sign(hashed(text))).toString('hex')),
    },
    tron: {
      publicKeyHex: '',
      address: TronWeb.address.fromPrivateKey(key),
      signatures: texts.map((text) => Trx.signMessageV2(text, key).slice(2)),
    },
  }
})
console.log(JSON.stringify({ texts, wallets }))
`

interface SignedTexts {
  readonly publicKeyHex: string
  readonly address: string
  readonly signatures: readonly string[]
}

test('signatures of the newest @stellar/stellar-sdk and tronweb prove their wallets', async () => {
  const folder = temporaryFolder()
  await writeFile(join(folder, 'package.json'), '{ "private": true, "type": "module" }')
  await writeFile(join(folder, 'sign.js'), program)
  const packages = ['@stellar/stellar-sdk@latest', 'tronweb@latest']
  await run('npm', ['install', '--no-audit', '--no-fund', ...packages], { cwd: folder })
  const { stdout } = await run(process.execPath, ['sign.js'], { cwd: folder, maxBuffer: 10_000_000 })
  const { texts, wallets } = JSON.parse(stdout) as {
    readonly texts: readonly string[]
    readonly wallets: readonly { readonly stellar: SignedTexts; readonly tron: SignedTexts }[]
  }
  expect(wallets).toHaveLength(8)
  for (const wallet of wallets) {
    for (const adapter of [stellar, tron]) {
      const { publicKeyHex, address, signatures } = wallet[adapter.id as 'stellar' | 'tron']
      for (const [index, signatureHex] of signatures.entries()) {
        const proof = { publicKeyHex, signatureHex, address }
        expect(await adapter.verify(texts[index]!, proof, nativeVerifier)).toMatchObject({ address, publicKeyHex })
        expect(await adapter.verify(`${texts[index]} `, proof, nativeVerifier)).toBeUndefined()
      }
    }
  }
}, 300_000)
