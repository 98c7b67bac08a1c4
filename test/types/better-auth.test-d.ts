// The assertion is that it compiles, here and in a project that has the package installed (consumer.test.ts).
import { DatabaseSync } from 'node:sqlite'
import { betterAuth } from 'better-auth'
import { bearer } from 'better-auth/plugins'
import { createCountersign, type Host } from 'countersign'
import {
  betterAuthHost,
  type CrossDeviceOptions,
  crossDevice,
  openStore,
  type WalletSignInOptions,
  walletSignIn,
} from 'countersign/better-auth'

const wallet: WalletSignInOptions = { syncAddressToUser: true, adapters: ['nimiq'] }
const orders: CrossDeviceOptions = { store: await openStore('sqlite::memory:'), confirmationCode: 'return' }

export const auth = betterAuth({
  database: new DatabaseSync(':memory:'),
  plugins: [walletSignIn(wallet), crossDevice(orders), bearer({ requireSignature: true })],
})

const host: Host = betterAuthHost(auth)
await createCountersign({ sessionHost: host })

const { nonceId, message } = await auth.api.issueWalletNonce({ body: {} })
const { session } = await auth.api.verifyWalletSignIn({ body: { nonceId, publicKeyHex: '', signatureHex: message } })
export const address: string = session.address
const { claimUrl } = await auth.api.startOrder({ body: { kind: 'login' } })
export const url: string = claimUrl
// @ts-expect-error: a kind that does not exist.
await auth.api.startOrder({ body: { kind: 'pay' } })
// @ts-expect-error: a server without the plugin.
betterAuthHost(betterAuth({}))
// @ts-expect-error: an option of the service, not of the plugin.
walletSignIn({ publicUrl: 'https://auth.example' })
