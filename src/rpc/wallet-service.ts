import type { MessageInitShape } from '@bufbuild/protobuf'
import type { WalletSchema, WalletService } from '../../gen/server/countersign/v1/wallet_service_pb.ts'
import type { ListedWallet, UserWallets } from '../core/sign-in/user-wallets.ts'
import type { Proof } from '../core/wallet/wallet.ts'
import { CountersignError } from '../shared/errors.ts'
import { limited, type ServiceHandlers, setCookies, withTimes } from './methods.ts'

/** WalletService on the domain. Without `wallets`, its calls are NOT_ENABLED. */
export function walletHandlers(wallets?: UserWallets): ServiceHandlers<typeof WalletService> {
  const enabled = (): UserWallets => {
    if (wallets !== undefined) return wallets
    throw new CountersignError('NOT_ENABLED', 'The application keeps its users and their wallets itself')
  }
  return {
    listWallets: limited('session', async (_input, call) => {
      const { wallets, cookies } = await enabled().list(call.request)
      setCookies(call, cookies)
      return { wallets: wallets.map(walletFields) }
    }),
    linkWallet: limited('sign-in', async ({ nonceId, proof }, call) => {
      // Required by the schema.
      const { wallet, cookies } = await enabled().link(nonceId, proof as Proof, call.request)
      setCookies(call, cookies)
      return { wallet: walletFields(wallet) }
    }),
    unlinkWallet: limited('sign-in', async ({ adapterId, address }, call) => {
      const { cookies } = await enabled().unlink(adapterId, address, call.request)
      setCookies(call, cookies)
      return {}
    }),
  }
}

/** A wallet as the API shows it. */
export function walletFields(wallet: ListedWallet): MessageInitShape<typeof WalletSchema> {
  const { subject: _subject, ...shown } = wallet
  return withTimes(shown, 'linkedAt')
}
