import { providerOf, type VendorWallet } from './vendor-wallet.ts'

/** A request for a signature, as MetaMask's window shows it. */
export interface ShownRequest {
  /** What it reads in the text: nothing if that is no form of EIP-4361. */
  readonly form?: { readonly domain: string; readonly address: string; readonly statement: string } | undefined
  /** Whether it warns that the form is for another domain than the page's. */
  readonly warns: boolean
}

/** MetaMask's controllers, as its extension connects them, with a key ring of its own. */
export interface MetaMask extends VendorWallet {
  /** `personal_sign` for a page of this origin. */
  personalSign(data: string, origin: string): Promise<string>
  /** Makes the user decline the next request. */
  declineNext(): void
  /** What its user was asked, in order. */
  readonly shown: readonly ShownRequest[]
}

/** The user approves each request, unless `declineNext` was called. */
export async function openMetaMask(load: NodeJS.Require): Promise<MetaMask> {
  const { Messenger } = load('@metamask/messenger')
  const { ApprovalController } = load('@metamask/approval-controller')
  const { KeyringController } = load('@metamask/keyring-controller')
  const { LoggingController } = load('@metamask/logging-controller')
  const { SignatureController } = load('@metamask/signature-controller')
  const { isValidSIWEOrigin, toChecksumHexAddress } = load('@metamask/controller-utils')

  const root = new Messenger({ namespace: 'Root' })
  const messengerOf = (namespace: string, actions: readonly string[] = []) => {
    const messenger = new Messenger({ namespace, parent: root })
    root.delegate({ messenger, actions })
    return messenger
  }
  const network = messengerOf('NetworkController')
  const mainnet = { configuration: { chainId: '0x1' } }
  network.registerActionHandler('NetworkController:getNetworkClientById', () => mainnet)
  new LoggingController({ messenger: messengerOf('LoggingController') })
  const keyring = new KeyringController({
    messenger: messengerOf('KeyringController'),
    encryptor: load('@metamask/browser-passworder'),
  })
  const approvals = new ApprovalController({ messenger: messengerOf('ApprovalController'), showApprovalRequest() {} })
  const signatures = new SignatureController({
    messenger: messengerOf('SignatureController', [
      'ApprovalController:addRequest',
      'KeyringController:signPersonalMessage',
      'KeyringController:signTypedMessage',
      'LoggingController:add',
      'NetworkController:getNetworkClientById',
    ]),
  })
  await keyring.createNewVaultAndKeychain('a password of the tests')
  const [from] = await keyring.getAccounts()

  const shown: ShownRequest[] = []
  let declines = false
  root.subscribe('ApprovalController:stateChange', () => {
    for (const { id, origin, requestData } of Object.values<Request>(approvals.state.pendingApprovals)) {
      const { siwe } = requestData
      const form = siwe.isSIWEMessage ? siwe.parsedMessage : undefined
      shown.push({ form, warns: form !== undefined && !isValidSIWEOrigin({ ...requestData, origin }) })
      const isDeclined = declines
      declines = false
      // Once the state is as it says.
      queueMicrotask(() => (isDeclined ? approvals.reject(id, declinedByUser(load)) : approvals.accept(id)))
    }
  })
  const personalSign = async (data: string, origin: string): Promise<string> => {
    const request = { origin, networkClientId: 'mainnet', id: 1 }
    return await signatures.newUnsignedPersonalMessage({ from, data, origin }, request)
  }
  const address: string = toChecksumHexAddress(from)
  return {
    address,
    shown,
    personalSign,
    walletFor: (origin) => providerOf(address, (text) => personalSign(hexOf(text), origin)),
    declineNext() {
      declines = true
    },
    async judge(text, origin) {
      await personalSign(hexOf(text), origin)
      const { form, warns } = shown.at(-1) ?? { warns: false }
      if (form === undefined) return 'plain text'
      return warns ? 'warning' : 'form'
    },
  }
}

interface Request {
  readonly id: string
  readonly origin: string
  // biome-ignore lint/suspicious/noExplicitAny: MetaMask's own shape.
  readonly requestData: any
}

function declinedByUser(load: NodeJS.Require): unknown {
  return load('@metamask/rpc-errors').providerErrors.userRejectedRequest()
}

function hexOf(text: string): string {
  return `0x${Buffer.from(text).toString('hex')}`
}
