import { DatabaseSync } from 'node:sqlite'
import { betterAuth } from 'better-auth'
import { crossDevice, walletSignIn } from '../../src/better-auth/index.ts'

const synced = { syncAddressToUser: true, syncPublicKeyToUser: true }

/** What Better Auth's command line reads in the test of the schema that it generates. */
export const auth = betterAuth({
  database: new DatabaseSync(':memory:'),
  plugins: [walletSignIn(synced), crossDevice({ ...synced, orderModelName: 'approvals' })],
})
