import { nimiqPay, type OrderChallenge, readWalletAnswer, type Wallet, type WalletSignature } from '../client/index.ts'
import { openToyWallet, type ToyWallet } from './toy-wallet.ts'

/** The wallet of the app that opened the page, or else a toy wallet; `undefined` if none is of the kind that an order asks for. */
export function findWallet({ adapterId }: OrderChallenge): Wallet | undefined {
  const inPage = nimiqPay()
  return inPage !== undefined && adapterId !== undefined && adapterId !== inPage.adapterId
    ? undefined
    : remembering(inPage ?? openToyWallet(adapterId))
}

/** Whether a wallet is the page's own. */
export function isToy(wallet: Wallet | undefined): wallet is ToyWallet {
  return wallet !== undefined && 'publicKeyHex' in wallet
}

/** A wallet that keeps its last signature, so that a retry after a lost answer does not ask the user again. */
function remembering<W extends Wallet>(wallet: W | undefined): W | undefined {
  if (wallet === undefined) return undefined
  let signed: { readonly message: string; readonly answer: WalletSignature } | undefined
  return {
    ...wallet,
    async sign(message: string) {
      // Read here, because a wallet may also answer with an error, which must not be kept.
      if (signed?.message !== message) signed = { message, answer: readWalletAnswer(await wallet.sign(message)) }
      return signed.answer
    },
  }
}
