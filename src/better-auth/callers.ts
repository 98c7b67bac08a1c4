import type { AuthContext, GenericEndpointContext } from '@better-auth/core'
import { bearerToken } from '../base/request.ts'
import { requestOf } from './request.ts'
import { cookieOf, unsignedToken, type WalletSession, WalletSessions } from './sessions.ts'

/**
 * The sessions that Better Auth could serve the request for: of its bearer token, which may lack a signature if Better Auth's
 * bearer plugin says so, and of its cookie.
 */
export async function callersOf(ctx: GenericEndpointContext): Promise<WalletSession[]> {
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
