import type { ChooserTexts } from '../wallets/chooser-texts.ts'
import type { DeviceTexts } from './texts.ts'

/** English texts of the sign-in on this device, without those of the list, which has its own. */
export const englishDeviceTexts: Omit<DeviceTexts, keyof ChooserTexts> = {
  asking: 'Confirm in {wallet}.',
  verifying: 'One moment.',
  declined: 'You declined in the wallet. To try again, choose it again.',
  closed: 'The wallet was closed without an answer. To try again, choose it again.',
  answerFirst: 'The wallet already shows a request. Answer that one first, then choose the wallet again.',
  switched: 'The account or network in the wallet has changed. Choose the wallet again to sign in with the new one.',
  walletFailed: 'The wallet did not sign. Check that it is unlocked, then choose it again.',
  notAccepted: 'This site does not accept that kind of wallet. Choose another one.',
  notAllowed: 'This wallet is not allowed to sign in here.',
  wrongNetwork:
    'This site does not accept contract wallets on that network. Change the network or choose another wallet.',
  late: 'That took too long. Choose the wallet again.',
}
