import type { BetterAuthPlugin } from 'better-auth'
import { createAuthMiddleware } from 'better-auth/api'
import { callersOf } from './callers.ts'
import { apiError, guarded } from './failures.ts'
import { type WalletSession, WalletSessions } from './sessions.ts'

type AfterHooks = NonNullable<NonNullable<BetterAuthPlugin['hooks']>['after']>

/**
 * Hooks that keep Better Auth's endpoints from bringing back the session of an order that was taken back while they ran: see
 * `WalletSessions.endIfTakenBack`. A database brings nothing back.
 */
export const takenBackHooks: AfterHooks = [
  {
    matcher: ({ context }) => context.options.secondaryStorage !== undefined,
    handler: createAuthMiddleware(async (ctx) => {
      const { session } = ctx.context
      const sessions = new WalletSessions(ctx.context)
      await guarded(async () => {
        // Better Auth has dropped the session if it could not extend it, which does not mean that it has written nothing.
        const served: readonly WalletSession[] = session === null ? await callersOf(ctx) : [session.session]
        for (const each of served) await sessions.endIfTakenBack(each)
      }).catch((thrown: unknown) => {
        throw apiError(thrown)
      })
    }),
  },
]
