import type { ReasonsOf } from '../../shared/errors.ts'
import type { OrderStatus } from '../../shared/orders.ts'
import type { ChooserTexts } from '../../shared/texts/chooser.ts'
import type { ClientErrorCode, CountersignClientError } from '../client/errors.ts'

/** Texts of the element. Set its property `texts` to change or translate them. */
export interface SignInTexts extends Record<OrderStatus, string> {
  /** In place of `finalized`, if the order was for a signature. */
  readonly signed: string
  /** While a code is being made, and while anything else is. */
  readonly starting: string
  readonly loading: string
  /** In place of `created`, for a code in place of one that has expired. */
  readonly renewed: string
  readonly reconnecting: string
  readonly failed: string
  readonly offline: string
  /** The service does not trust the page's origin. */
  readonly notTrusted: string
  /** Something else than the service answers at its address. */
  readonly notFound: string
  readonly busy: string
  readonly qrLabel: string
  readonly codeLabel: string
  /** Three steps beside the QR code, for those who have not scanned one. */
  readonly stepCamera: string
  readonly stepOpen: string
  readonly stepApprove: string
  /** In place of `created`, if the QR code leads to `{host}`, a name of this computer. */
  readonly localOnly: string
  /** In place of `waiting_user`, if there is no confirmation code to compare. */
  readonly answer: string
  /** The phone shows a code that has to be typed here. */
  readonly returnCode: string
  readonly returnCodeLabel: string
  readonly submit: string
  readonly checking: string
  /** `{tries}` stands for the number of codes that are left to try: 2. */
  readonly wrongCode: string
  /** In place of `wrongCode`, if one is left. */
  readonly lastTry: string
  readonly codesUsedUp: string
  /** The code was not typed in time. */
  readonly tooLate: string
  /** The phone stopped the request after it was approved. */
  readonly stopped: string
  /** The browser has lost the key that the request was started with. */
  readonly keyLost: string
  /** `{time}` stands for the minutes and seconds that are left. */
  readonly expiresIn: string
  readonly copy: string
  readonly copied: string
  readonly copyFailed: string
  readonly cancel: string
  readonly renew: string
  /** In place of `renew`, after a failure. */
  readonly tryAgain: string
  /** Button that shows the wallets on this device. */
  readonly thisDevice: string
  /** Button that shows the QR code, on phones. */
  readonly otherDevice: string
  /** In place of `created`, if wallets on this device come before the QR code. */
  readonly scanElsewhere: string
  /** The script with the list of wallets did not load. */
  readonly walletsFailed: string
  /**
   * Texts of the list of wallets. They are loaded with it: those that are left out are not in `texts`, and stay
   * English.
   */
  readonly wallets?: Partial<DeviceTexts>
}

/**
 * Texts of the sign-in with a wallet on this device: those of the list, and of what happens when a wallet is chosen.
 */
export interface DeviceTexts extends ChooserTexts {
  /** While the wallet waits for its user. `{wallet}` stands for its name. */
  readonly asking: string
  /** While the service checks the signature. */
  readonly verifying: string
  readonly declined: string
  readonly closed: string
  /** The browser blocked the wallet's window. */
  readonly blocked: string
  /** The wallet already shows a request. */
  readonly answerFirst: string
  /** The user has switched to another account or network since the text to sign was made. */
  readonly switched: string
  readonly walletFailed: string
  /** The service does not have the wallet's adapter. */
  readonly notAccepted: string
  /** The application refused this user. */
  readonly notAllowed: string
  /** The service has no RPC for the network of a contract wallet. */
  readonly wrongNetwork: string
  /** The signature came after the end of the text's life. */
  readonly late: string
  /** Name of the demo wallet, which is offered to developers only. */
  readonly demoWallet: string
}

/** Names of the texts that are loaded with the element. */
export type TextName = Exclude<keyof SignInTexts, 'wallets'>

const errorTexts: Readonly<Partial<Record<ClientErrorCode, TextName>>> = {
  NETWORK: 'offline',
  STORE_UNAVAILABLE: 'offline',
  UNEXPECTED_ANSWER: 'notFound',
  ORIGIN_NOT_TRUSTED: 'notTrusted',
  RATE_LIMITED: 'busy',
  ORDER_REJECTED: 'stopped',
  ORDER_CANCELLED: 'cancelled',
  ORDER_EXPIRED: 'expired',
  COMPUTER_PROOF_INVALID: 'keyLost',
} satisfies Record<'NETWORK' | 'UNEXPECTED_ANSWER' | ReasonsOf<'element'>, TextName>

/** The text for an error. The page gets the error itself in an event. */
export function errorText(error: CountersignClientError, texts: SignInTexts): string {
  return texts[errorTexts[error.code] ?? 'failed']
}
