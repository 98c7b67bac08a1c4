import { base58 } from '@scure/base'
import nacl from 'tweetnacl'
import { type Hex, hashMessage, parseSignature } from 'viem'
import { generatePrivateKey, privateKeyToAccount, sign } from 'viem/accounts'
import { providerOf, standardWalletOf, type VendorWallet } from './vendor-wallet.ts'

const [okay, declined] = [Uint8Array.of(0x90, 0x00), Uint8Array.of(0x69, 0x85)]

/** The data of an APDU after its derivation path, which the first part of a message begins with. */
function afterPath(data: Buffer, before = 0): Buffer {
  return data.subarray(before + 1 + 4 * (data[before] ?? 0))
}

/** Ledger's library for Ethereum, over a device of the test, which answers its APDUs. */
export function openLedgerEthereum(load: NodeJS.Require): VendorWallet {
  const { default: Eth } = load('@ledgerhq/hw-app-eth')
  const { default: Transport } = load('@ledgerhq/hw-transport')
  const privateKey = generatePrivateKey()
  const { address } = privateKeyToAccount(privateKey)
  let declines = false
  let parts: Buffer[] = []

  const signMessage = async (isFirst: boolean, data: Buffer): Promise<Uint8Array> => {
    parts = isFirst ? [afterPath(data)] : [...parts, data]
    const [length, text] = [Buffer.concat(parts).readUInt32BE(), Buffer.concat(parts).subarray(4)]
    if (text.length < length) return okay
    const { r, s, v } = parseSignature(await sign({ hash: hashMessage({ raw: text }), privateKey, to: 'hex' }))
    return Buffer.concat([Buffer.of(Number(v)), ...[r, s].map(bytesOf), okay])
  }
  class Device extends Transport {
    async exchange(apdu: Buffer): Promise<Buffer> {
      if (apdu[0] !== 0xe0 || apdu[1] !== 0x08) throw new Error(`unknown: ${apdu.toString('hex')}`)
      const isDeclined = declines
      declines = false
      return Buffer.from(isDeclined ? declined : await signMessage(apdu[2] === 0, apdu.subarray(5)))
    }
  }
  const ledger = new Eth(new Device())
  const personalSign = async (text: string): Promise<string> => {
    const { v, r, s } = await ledger.signPersonalMessage("44'/60'/0'/0/0", Buffer.from(text).toString('hex'))
    return `0x${r}${s}${v.toString(16)}`
  }
  return {
    address,
    walletFor: () => providerOf(address, personalSign),
    declineNext() {
      declines = true
    },
  }
}

function bytesOf(hex: Hex): Buffer {
  return Buffer.from(hex.slice(2), 'hex')
}

/** Layouts of off-chain messages that Ledger's library makes. */
export type LedgerVersion = 'v0' | 'v1' | 'legacy'

/** Ledger's library for Solana, over a device of the test. It puts texts into off-chain messages. */
export async function openLedgerSolana(load: NodeJS.Require, version: LedgerVersion): Promise<VendorWallet> {
  const { DeviceManagementKitBuilder, DeviceModelId } = load('@ledgerhq/device-management-kit')
  const { SignerSolanaBuilder } = load('@ledgerhq/device-signer-kit-solana')
  const { firstValueFrom, lastValueFrom, of } = load('rxjs')
  const { Right } = load('purify-ts')
  const { publicKey, secretKey } = nacl.sign.keyPair()
  let declines = false
  let parts: Buffer[] = []
  let signedMessage = new Uint8Array()

  const answer = (apdu: Buffer): Uint8Array => {
    const [, instruction, , flags = 0] = apdu
    if (apdu[0] === 0xb0) return Buffer.from('\x01\x06Solana\x051.9.0\x01\x00', 'latin1')
    if (instruction === 0x05) return publicKey
    if (instruction !== 0x07) throw new Error(`unknown: ${apdu.toString('hex')}`)
    parts = [...((flags & 1) === 0 ? [] : parts), apdu.subarray(5)]
    if ((flags & 2) !== 0) return new Uint8Array()
    signedMessage = Uint8Array.from(afterPath(Buffer.concat(parts), 1))
    return nacl.sign.detached(signedMessage, secretKey)
  }
  const sendApdu = async (apdu: Uint8Array) => {
    const isDeclined = declines && apdu[1] === 0x07
    if (isDeclined) declines = false
    const data = isDeclined ? new Uint8Array() : Uint8Array.from(answer(Buffer.from(apdu)))
    return Right({ statusCode: isDeclined ? declined : okay, data })
  }
  // biome-ignore lint/suspicious/noExplicitAny: Ledger's own shape.
  const transport = ({ deviceModelDataSource }: any) => {
    const deviceModel = deviceModelDataSource.getDeviceModel({ id: DeviceModelId.NANO_X })
    const device = { id: 'device', name: 'Device', transport: 'TEST', deviceModel }
    return {
      getIdentifier: () => 'TEST',
      isSupported: () => true,
      startDiscovering: () => of(device),
      stopDiscovering() {},
      listenToAvailableDevices: () => of([device]),
      connect: async () => Right({ ...device, type: 'USB', sendApdu }),
      disconnect: async () => Right(undefined),
    }
  }
  const kit = new DeviceManagementKitBuilder().addTransport(transport).build()
  const device = await firstValueFrom(kit.startDiscovering({ transport: 'TEST' }))
  const sessionId = await kit.connect({ device, sessionRefresherOptions: { isRefresherDisabled: true } })
  const signer = new SignerSolanaBuilder({ dmk: kit, sessionId, originToken: 'test' }).build()

  const signBytes = async (bytes: Uint8Array) => {
    const { observable } = signer.signMessage("44'/501'/0'/0'", bytes, { version, skipOpenApp: true })
    const { output, error } = await lastValueFrom(observable)
    if (output === undefined) throw error
    // Its answer in base58: the number of signatures, the signature, the message.
    const signature = Buffer.from(base58.decode(output.signature)).subarray(1, 65)
    return { signature: Uint8Array.from(signature), signedMessage }
  }
  return {
    address: base58.encode(publicKey),
    walletFor: () => standardWalletOf(publicKey, signBytes),
    declineNext() {
      declines = true
    },
  }
}

/** Trezor's library for Ethereum, whose calls a device of the test answers. */
export function openTrezor(load: NodeJS.Require): VendorWallet {
  const { default: EthereumSignMessage } = load('@trezor/connect/lib/api/ethereum/api/ethereumSignMessage')
  const { TrezorError } = load('@trezor/connect/lib/constants/errors')
  const privateKey = generatePrivateKey()
  const { address } = privateKeyToAccount(privateKey)
  let declines = false
  const typedCall = async (_name: string, _answer: string, { message }: { message: string }) => {
    const isDeclined = declines
    declines = false
    if (isDeclined) throw new TrezorError('Failure_ActionCancelled', 'Action cancelled by user')
    const signature = await sign({ hash: hashMessage({ raw: Buffer.from(message, 'hex') }), privateKey, to: 'hex' })
    return { message: { address, signature: signature.slice(2) } }
  }
  return {
    address,
    walletFor: () =>
      providerOf(address, async (message) => {
        const payload = { method: 'ethereumSignMessage', path: "m/44'/60'/0'/0/0", message }
        const call = new EthereumSignMessage({ id: 1, payload })
        call.init()
        call.device = { getCommands: () => ({ typedCall }) }
        return (await call.run()).signature
      }),
    declineNext() {
      declines = true
    },
  }
}
