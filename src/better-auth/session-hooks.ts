import type { AuthContext, GenericEndpointContext } from '@better-auth/core'
import type { BetterAuthPlugin } from 'better-auth'
import { createAuthMiddleware } from 'better-auth/api'
import { bearerToken } from '../base/request.ts'
import type { KnownComputers } from '../core/order/known-computers.ts'
import type { Session } from '../core/users/host.ts'
import { forgetComputerOf } from '../core/users/own-sessions.ts'
import { type WalletIdentity, walletOf } from '../core/wallet/wallet.ts'
import { apiError, guarded } from './failures.ts'
import { requestOf } from './request.ts'
import { cookieOf, sessionOf, unsignedToken, type WalletSession, WalletSessions } from './sessions.ts'
import type { WalletSettings } from './settings.ts'
import { walletsOfUser } from './users.ts'

/**
 * The sessions that Better Auth could serve the request for: of its bearer token, which may lack a signature if Better
 * Auth's bearer plugin says so, and of its cookie.
 */
async function callersOf(ctx: GenericEndpointContext): Promise<WalletSession[]> {
  const { context } = ctx
  const request = requestOf(ctx)
  const bearer = bearerToken(request)
  const cookie = cookieOf(ctx, request.headers)
  const tokens = [
    bearer === undefined ? undefined : (unsignedToken(bearer, context) ?? plainToken(bearer, context)),
    cookie === undefined ? undefined : unsignedToken(cookie, context),
  ].filter((token) => token !== undefined)
  const sessions = new WalletSessions(context)
  const found = await Promise.all(tokens.map((token) => sessions.find(token)))
  return found.filter((session) => session !== undefined)
}

function plainToken(bearer: string, { options }: AuthContext): string | undefined {
  const plugin = options.plugins?.find(({ id }) => id === 'bearer')
  return plugin !== undefined && plugin.options?.requireSignature !== true && !bearer.includes('.') ? bearer : undefined
}

type BeforeHooks = NonNullable<NonNullable<BetterAuthPlugin['hooks']>['before']>

/** What Better Auth's own endpoints that end sessions forget, by their paths. */
const revocations: Readonly<Record<string, (revocation: Revocation) => Promise<void>>> = {
  '/revoke-session': async ({ ctx, callers, computers }) => {
    const { token }: { readonly token?: unknown } = ctx.body ?? {}
    if (typeof token !== 'string') return
    const found = await new WalletSessions(ctx.context).find(token)
    const session = found === undefined ? undefined : sessionOf(found)
    if (callers.some(({ userId }) => userId === session?.userId)) await forgetComputerOf(session, computers)
  },
  '/revoke-sessions': async (revocation) => await forgetAll(revocation, () => undefined),
  '/revoke-other-sessions': async (revocation) => await forgetAll(revocation, ({ computerId }) => computerId),
  // Also if the password turns out to be wrong: the computers then only need a code once more.
  '/change-password': async (revocation) => {
    const { revokeOtherSessions }: { readonly revokeOtherSessions?: unknown } = revocation.ctx.body ?? {}
    if (revokeOtherSessions === true) await forgetAll(revocation, ({ computerId }) => computerId)
  },
}

interface Revocation {
  readonly ctx: GenericEndpointContext
  readonly settings: WalletSettings
  readonly computers: KnownComputers
  /** The sessions that the request has credentials of. */
  readonly callers: readonly Session[]
}

/**
 * Hooks with which revoking sessions by Better Auth's own endpoints forgets known computers, as revoking them by the
 * service does. They run before the sessions are ended: if a call fails in between, a retry forgets and ends the rest.
 * Signing out forgets none.
 */
export function revocationHooks(computers: KnownComputers, settings: WalletSettings): BeforeHooks {
  return [
    {
      matcher: ({ path }) => path !== undefined && Object.hasOwn(revocations, path),
      handler: createAuthMiddleware(async (ctx) => {
        try {
          const callers = (await guarded(() => callersOf(ctx))).map(sessionOf)
          await revocations[ctx.path]?.({ ctx, settings, computers, callers })
        } catch (thrown) {
          throw apiError(thrown)
        }
      }),
    },
  ]
}

/** A hook of the database with which a wallet that is unlinked, or whose user is deleted, loses its known computers. */
export function unlinkHook(computers: KnownComputers, { adapterIds }: WalletSettings) {
  return async ({ providerId, accountId }: { readonly providerId: string; readonly accountId: string }) => {
    if (!adapterIds.has(providerId)) return
    await computers.forgetOthers({ adapterId: providerId, subject: accountId }, undefined).catch((thrown: unknown) => {
      throw apiError(thrown)
    })
  }
}

/**
 * Forgets the computers of all wallets of the callers' users, and of those that their sessions were made with, but one
 * each.
 */
async function forgetAll(
  { ctx, settings, computers, callers }: Revocation,
  keptOf: (caller: Session) => string | undefined,
): Promise<void> {
  for (const caller of callers) {
    const sessions = await guarded(() => new WalletSessions(ctx.context).list(caller.userId))
    const wallets: readonly WalletIdentity[] = [
      ...(await walletsOfUser(ctx.context, settings, caller)),
      ...sessions.map((session) => walletOf(sessionOf(session))),
    ]
    const distinct = new Map(wallets.map((wallet) => [JSON.stringify([wallet.adapterId, wallet.subject]), wallet]))
    const kept = keptOf(caller)
    await Promise.all([...distinct.values()].map((wallet) => computers.forgetOthers(wallet, kept)))
  }
}

type AfterHooks = NonNullable<NonNullable<BetterAuthPlugin['hooks']>['after']>

/**
 * Hooks that keep Better Auth's endpoints from bringing back the session of an order that was taken back while they
 * ran: see `WalletSessions.endIfTakenBack`. A database brings nothing back.
 */
export const takenBackHooks: AfterHooks = [
  {
    matcher: ({ context }) => context.options.secondaryStorage !== undefined,
    handler: createAuthMiddleware(async (ctx) => {
      const { session } = ctx.context
      const sessions = new WalletSessions(ctx.context)
      await guarded(async () => {
        // Better Auth has dropped the session if it could not extend it, which does not mean that it has written
        // nothing.
        const served: readonly WalletSession[] = session === null ? await callersOf(ctx) : [session.session]
        for (const each of served) await sessions.endIfTakenBack(each)
      }).catch((thrown: unknown) => {
        throw apiError(thrown)
      })
    }),
  },
]
