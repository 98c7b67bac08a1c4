import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { type BetterAuthOptions, betterAuth } from 'better-auth'
import { getMigrations } from 'better-auth/db/migration'
import { bearer } from 'better-auth/plugins'
import { crossDevice, openStore, walletSignIn } from '../../src/better-auth/index.ts'

const port = Number(process.env.PORT ?? 3000)

/** Where people reach the application. */
export const baseURL = `http://localhost:${port}`

const options = {
  appName: 'Better Auth example',
  baseURL,
  // For the example only: an application's own comes from its environment.
  secret: process.env.BETTER_AUTH_SECRET ?? 'a secret for the example and for nothing else',
  database: new DatabaseSync(process.env.DATABASE ?? join(tmpdir(), 'countersign-better-auth-example.db')),
  // Its users sign in the usual way, too, and can add a wallet.
  emailAndPassword: { enabled: true },
  plugins: [
    walletSignIn({ syncAddressToUser: true }),
    // Against relayed orders: the phone shows a code, and the user types it on the computer, unless that is remembered.
    crossDevice({ confirmationCode: 'return', store: await openStore(process.env.STORE ?? 'sqlite::memory:') }),
    bearer({ requireSignature: true }),
  ],
} satisfies BetterAuthOptions

// What `npx auth migrate` does.
const { runMigrations } = await getMigrations(options)
await runMigrations()

/** Better Auth, as any application sets it up, with Countersign's two plugins. */
export const auth = betterAuth(options)
