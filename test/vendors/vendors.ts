import { createHash } from 'node:crypto'
import { base58 } from '@scure/base'
import nacl from 'tweetnacl'
import { generatePrivateKey } from 'viem/accounts'
import type { Wallet } from '../../src/browser/client/index.ts'
import type { SolanaSignInInput } from '../../src/browser/wallets/solana-wallet.ts'
import { openLedgerEthereum, openLedgerSolana, openTrezor } from './hardware.ts'
import { openMetaMask } from './metamask.ts'
import { type PackageName, versionsOf } from './packages.ts'
import { providerOf, standardWalletOf, type VendorWallet } from './vendor-wallet.ts'

/** A vendor's way to sign, which is one row of the table in docs/wallets.md. */
export interface Vendor {
  readonly name: string
  readonly versions: string
  open(load: NodeJS.Require): Promise<VendorWallet>
}

function vendor(name: string, packages: readonly PackageName[], open: Vendor['open']): Vendor {
  return { name, versions: versionsOf(...packages), open }
}

const ledgerSolana = ['@ledgerhq/device-signer-kit-solana'] as const

export const vendors: readonly Vendor[] = [
  vendor(
    'MetaMask',
    ['@metamask/signature-controller', '@metamask/keyring-controller', '@metamask/approval-controller'],
    openMetaMask,
  ),
  vendor('Trust Wallet, Ethereum', ['@trustwallet/wallet-core'], async (load) => {
    const { key, CoinType, CoinTypeExt, EthereumMessageSigner } = await trustKey(load)
    const address = CoinTypeExt.deriveAddress(CoinType.ethereum, key)
    const sign = async (text: string) => `0x${EthereumMessageSigner.signMessage(key, text)}`
    return { address, walletFor: () => providerOf(address, sign) }
  }),
  vendor('Trust Wallet, Solana', ['@trustwallet/wallet-core'], async (load) => {
    const { key, CoinType, CoinTypeExt, MessageSigner, TW } = await trustKey(load)
    const { MessageSigningInput, MessageSigningOutput } = TW.Solana.Proto
    const address: string = CoinTypeExt.deriveAddress(CoinType.solana, key)
    const sign = async (bytes: Uint8Array) => {
      const message = new TextDecoder().decode(bytes)
      const input = MessageSigningInput.encode({ privateKey: key.data(), message }).finish()
      const { signature } = MessageSigningOutput.decode(MessageSigner.sign(CoinType.solana, input))
      return { signature: base58.decode(signature) }
    }
    return { address, walletFor: () => standardWalletOf(base58.decode(address), sign) }
  }),
  vendor('OKX, Ethereum', ['@okxweb3/coin-ethereum'], async (load) => {
    const { EthWallet, MessageTypes } = load('@okxweb3/coin-ethereum')
    const [wallet, privateKey] = [new EthWallet(), generatePrivateKey()]
    const { address } = await wallet.getNewAddress({ privateKey })
    const sign = (message: string) =>
      wallet.signMessage({ privateKey, data: { type: MessageTypes.PERSONAL_SIGN, message } })
    return { address, walletFor: () => providerOf(address, sign) }
  }),
  vendor('OKX, Solana', ['@okxweb3/coin-solana'], async (load) => {
    const { SolWallet } = load('@okxweb3/coin-solana')
    const wallet = new SolWallet()
    const privateKey = await wallet.getRandomPrivateKey()
    const { address } = await wallet.getNewAddress({ privateKey })
    const sign = async (bytes: Uint8Array) => {
      const signature = await wallet.signMessage({ privateKey, data: base58.encode(bytes) })
      return { signature: base58.decode(signature) }
    }
    return { address, walletFor: () => standardWalletOf(base58.decode(address), sign) }
  }),
  vendor('Nimiq', ['@nimiq/core', '@nimiq/hub-api'], async (load) => nimiq(load)),
  vendor('Solana’s Wallet Standard', ['@solana/wallet-standard-util'], async (load) => walletStandard(load)),
  vendor('Ledger, Ethereum', ['@ledgerhq/hw-app-eth'], async (load) => openLedgerEthereum(load)),
  vendor('Ledger, Solana, version 0', ledgerSolana, (load) => openLedgerSolana(load, 'v0')),
  vendor('Ledger, Solana, version 1', ledgerSolana, (load) => openLedgerSolana(load, 'v1')),
  vendor('Ledger, Solana, legacy', ledgerSolana, (load) => openLedgerSolana(load, 'legacy')),
  vendor('Trezor, Ethereum', ['@trezor/connect'], async (load) => openTrezor(load)),
]

async function trustKey(load: NodeJS.Require) {
  const { initWasm, TW } = load('@trustwallet/wallet-core')
  const core = await initWasm()
  return { ...core, TW, key: core.PrivateKey.create() }
}

/** Keys of Nimiq's own library over the envelope that the Hub's names. The answer has the Hub's form. */
function nimiq(load: NodeJS.Require): VendorWallet {
  const { KeyPair, PrivateKey } = load('@nimiq/core')
  const HubApi = load('@nimiq/hub-api')
  const pair = KeyPair.derive(PrivateKey.generate())
  const signer: string = pair.toAddress().toUserFriendlyAddress()
  const wallet: Wallet = {
    adapterId: 'nimiq',
    sign(message) {
      const enveloped = `${HubApi.MSG_PREFIX}${Buffer.byteLength(message)}${message}`
      const signature = pair.sign(createHash('sha256').update(enveloped).digest()).serialize()
      return { signer, signerPublicKey: pair.publicKey.serialize(), signature }
    },
  }
  return { address: signer, walletFor: () => wallet }
}

/** Wallet Standard's own library writes the text of `solana:signIn`, and reads texts. */
function walletStandard(load: NodeJS.Require): VendorWallet {
  const { createSignInMessage, parseSignInMessageText } = load('@solana/wallet-standard-util')
  const { publicKey, secretKey } = nacl.sign.keyPair()
  const address = base58.encode(publicKey)
  const sign = async (bytes: Uint8Array) => ({ signature: nacl.sign.detached(bytes, secretKey), signedMessage: bytes })
  const signIn = async (input: SolanaSignInInput) => {
    const signed = await sign(createSignInMessage({ ...input, address }))
    return [{ account: { address, publicKey, chains: ['solana:mainnet'] }, ...signed }]
  }
  return {
    address,
    walletFor: () => standardWalletOf(publicKey, sign, { 'solana:signIn': { signIn } }),
    async judge(text, origin) {
      const form = parseSignInMessageText(text)
      if (form === null) return 'plain text'
      return form.domain === new URL(origin).host ? 'form' : 'another domain'
    },
  }
}
