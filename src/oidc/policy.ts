import type { InteractionResults, interactionPolicy, KoaContextWithOIDC } from 'oidc-provider'
import type { Session } from '../core/users/host.ts'
import { requestState } from './request-state.ts'

/** What our interaction adds to the result that the library keeps. */
export interface OwnResult extends InteractionResults {
  /** The session that the user signed in with, or confirmed, during the interaction. */
  readonly confirmed?: { readonly sessionId: string; readonly isFresh: boolean }
}

/**
 * The prompts of the issuer. Who is signed in is asked of the request's live session alone: the library's own checks,
 * which go by what an interaction says of an account, are taken out.
 */
export function policyOf({ base, Check, Prompt }: typeof interactionPolicy) {
  const policy = base()
  const login = policy.get('login')
  if (login === undefined) throw new TypeError('the library has no prompt "login"')
  for (const reason of ['login_prompt', 'no_session', 'max_age']) login.checks.remove(reason)
  // Which applications users are asked about each time is decided where the grant is found.
  policy.get('consent')?.checks.remove('native_client_prompt')
  login.checks.add(
    new Check('no_live_session', 'End-User authentication is required', 'login_required', (ctx) => {
      const session = requestState.getStore()?.session
      return session === undefined || session.userId !== ctx.oidc.session?.accountId
    }),
    0,
  )
  login.checks.add(
    new Check('stale_session', 'End-User authentication could not be obtained', 'login_required', (ctx) => {
      const confirmed = confirmationOf(ctx)
      return needsFresh(ctx) && confirmed?.isFresh !== true
    }),
  )
  login.checks.add(
    new Check('other_wallet', 'another wallet is signed in', 'login_required', (ctx) => {
      const { login_hint: hint } = ctx.oidc.params ?? {}
      const session = requestState.getStore()?.session
      return typeof hint === 'string' && session !== undefined && !isHinted(hint, session) && !confirmationOf(ctx)
    }),
  )
  policy.add(
    new Prompt(
      { name: 'select_account', requestable: true },
      new Check('choice', 'the user chooses the wallet', 'account_selection_required', (ctx) => {
        return ctx.oidc.prompts.has('select_account') && confirmationOf(ctx) === undefined
      }),
    ),
    1,
  )
  const choice = policy.get('select_account')
  choice?.checks.remove('select_account_prompt')
  return policy
}

/** What the user confirmed during the interaction, if it was with the session of this request. */
function confirmationOf(ctx: KoaContextWithOIDC): OwnResult['confirmed'] {
  const { confirmed } = (ctx.oidc.result ?? {}) as OwnResult
  return confirmed?.sessionId === requestState.getStore()?.session?.id ? confirmed : undefined
}

/** Whether the request wants a sign-in that is newer than the session. */
function needsFresh(ctx: KoaContextWithOIDC): boolean {
  const { max_age: maxAge } = ctx.oidc.params ?? {}
  if (ctx.oidc.prompts.has('login')) return true
  // Times are whole seconds: with 0, a sign-in of the same second would count.
  return maxAge !== undefined && (Number(maxAge) === 0 || ctx.oidc.session?.past(Number(maxAge)) !== false)
}

/** Whether a hint is a session's user, or its wallet as `{adapter_id}:{address}`. */
function isHinted(hint: string, { userId, adapterId, address }: Session): boolean {
  return hint === userId || hint.replaceAll(' ', '') === `${adapterId}:${address}`.replaceAll(' ', '')
}
