import type { MessageInitShape } from '@bufbuild/protobuf'
import type { WalletSchema, WalletService } from '../../gen/server/countersign/v1/wallet_service_pb.ts'
import type { ListedWallet, UserWallets } from '../core/sign-in/user-wallets.ts'
import type { Proof } from '../core/wallet/wallet.ts'
import { CountersignError } from '../shared/errors.ts'
import { type ServiceHandlers, setCookies } from './methods.ts'

/** WalletService on the domain. Without `wallets`, its calls are NOT_ENABLED. */
export function walletHandlers(wallets?: UserWallets): ServiceHandlers<typeof WalletService> {
  const enabled = (): UserWallets => {
    if (wallets !== undefined) return wallets
    throw new CountersignError('NOT_ENABLED', 'The application keeps its users and their wallets itself')
  }
  return {
    listWallets: {
      limit: 'session',
      async handle(_input, call) {
        const { wallets, cookies } = await enabled().list(call.request)
        setCookies(call, cookies)
        return { wallets: wallets.map(walletFields) }
      },
    },
    linkWallet: {
      limit: 'sign-in',
      async handle({ nonceId, proof }, call) {
        // Required by the schema.
        const { wallet, cookies } = await enabled().link(nonceId, proof as Proof, call.request)
        setCookies(call, cookies)
        return { wallet: walletFields(wallet) }
      },
    },
    unlinkWallet: {
      limit: 'sign-in',
      async handle({ adapterId, address }, call) {
        const { cookies } = await enabled().unlink(adapterId, address, call.request)
        setCookies(call, cookies)
        return {}
      },
    },
  }
}

/** A wallet as the API shows it. */
function walletFields(wallet: ListedWallet): MessageInitShape<typeof WalletSchema> {
  const { subject: _subject, linkedAt, ...rest } = wallet
  return { ...rest, linkedAt: BigInt(linkedAt) }
}
