import type { Grant, InteractionResults, interactionPolicy, KoaContextWithOIDC } from 'oidc-provider'
import { isHintOfAnother } from './accounts.ts'
import type { ClientDirectory } from './client-directory.ts'
import { keepsConsent, mayUse } from './clients.ts'
import { type ConnectedApps, GrantsFull } from './connected-apps.ts'
import { type Grants, type Permission, permissionsIn, sidOf } from './grants.ts'
import type { IssuerParts, Loaded } from './issuer-parts.ts'
import { type Library, requestState } from './library-request.ts'

/** What our interaction adds to the result that the library keeps. */
export interface OwnResult extends InteractionResults {
  /** The session that the user signed in with, or confirmed, during the interaction. */
  readonly confirmed?: { readonly sessionId: string; readonly isFresh: boolean }
}

export interface PolicyParts extends Pick<IssuerParts, 'users' | 'readWallet'> {
  readonly apps: ConnectedApps
  readonly grants: Grants
  readonly directory: ClientDirectory
  readonly library: Library
}

/**
 * The prompts of the issuer. Who is signed in is asked of the request's live session alone: the library's own checks,
 * which use what an interaction says of an account, are taken out. Checks change nothing. The last prompt is that of
 * consent, for a request to which {@link grantLoader} has given no grant.
 */
export function policyOf({ base, Check, Prompt }: typeof interactionPolicy, parts: PolicyParts, loaded: Loaded) {
  const policy = base()
  const [login, consent] = [policy.get('login'), policy.get('consent')]
  if (login === undefined || consent === undefined) throw new TypeError('the library has other prompts')
  for (const reason of ['login_prompt', 'no_session', 'max_age']) login.checks.remove(reason)
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
    new Check('other_wallet', 'another wallet is signed in', 'login_required', async (ctx) => {
      const { login_hint: hint } = ctx.oidc.params ?? {}
      const session = requestState.getStore()?.session
      if (typeof hint !== 'string' || session === undefined || confirmationOf(ctx) !== undefined) return false
      return await isHintOfAnother({ hint, session }, parts)
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
  policy.add(
    new Prompt(
      { name: 'membership', requestable: false },
      new Check('not_a_member', 'this application is not for the account', 'access_denied', (ctx) => {
        const session = requestState.getStore()?.session
        const client = loaded.clients.get(String(ctx.oidc.client?.clientId))
        return session !== undefined && client !== undefined && !mayUse(session, client, loaded.people)
      }),
    ),
    2,
  )
  consent.checks.clear()
  consent.checks.add(
    new Check('not_allowed', 'the user has not allowed this', 'consent_required', ({ oidc }) => {
      // The library refuses a request that asks for nothing.
      return oidc.entities.Grant?.jti === undefined && askedIn(oidc, parts, loaded).size > 0
    }),
  )
  return policy
}

/**
 * Loads the grant of a request. The policy decides first: once it has nothing left to ask the user, the grant gets what
 * the user, or the operator, has allowed. Otherwise there is no grant, and the last prompt asks.
 */
export function grantLoader(policy: ReturnType<typeof policyOf>, parts: PolicyParts, loaded: Loaded) {
  return async (ctx: KoaContextWithOIDC): Promise<Grant | undefined> => {
    const { oidc } = ctx
    const { session, request } = requestState.getStore() ?? {}
    if (session === undefined || (await hasQuestion(policy, ctx))) return undefined
    const permission = await permissionOf(ctx, parts, loaded)
    if (permission === undefined) return undefined
    const { grants, library } = parts
    const { clientId, asked, isGiven, needsConsent } = permission
    if (!isGiven) {
      const gift = { clientId, asked, isAllowed: false, needsConsent, request }
      await grants.give(session, gift).catch((thrown: unknown) => {
        throw thrown instanceof GrantsFull ? new library.errors.AccessDenied(thrown.message) : thrown
      })
    }
    const grantId = await grants.liveIdOf(session, clientId)
    const grant = grantId && (await oidc.provider.Grant.find(grantId))
    if (!grant) return undefined
    oidc.session?.sidFor(clientId, sidOf(session.id, clientId))
    return grant
  }
}

/** Whether a prompt before that of consent asks the user something. */
async function hasQuestion(policy: ReturnType<typeof policyOf>, ctx: KoaContextWithOIDC): Promise<boolean> {
  for (const { name, checks } of policy) {
    if (name === 'consent') continue
    for (const { check } of checks) if (await check(ctx)) return true
  }
  return false
}

/**
 * What a request may have without a question: what the user has just allowed, which is given then, or has allowed
 * before, or anything if the client is the operator's own. `undefined`: the user is to be asked. Changes nothing. The
 * session that gives it is the live one, even if an interaction names another.
 */
async function permissionOf({ oidc }: KoaContextWithOIDC, parts: PolicyParts, loaded: Loaded) {
  const { apps, grants, directory } = parts
  const { session, request } = requestState.getStore() ?? {}
  const clientId = String(oidc.client?.clientId)
  const client = await directory.find(clientId, { request, route: oidc.route })
  const asked = askedIn(oidc, parts, loaded)
  if (session === undefined || client === undefined || asked.size === 0) return undefined
  const given = oidc.result?.consent?.grantId
  // What the user gave in this interaction counts if it is the grant of this session and client.
  if (given !== undefined && given === (await grants.idOf(session.id, clientId))) {
    return { clientId, asked, isGiven: true, needsConsent: false }
  }
  if (!keepsConsent(client) || oidc.prompts.has('consent')) return undefined
  const allowed = await apps.allowed(session.userId, clientId)
  return client.isFirstParty || [...asked].every((each) => allowed.has(each))
    ? { clientId, asked, isGiven: false, needsConsent: !client.isFirstParty }
    : undefined
}

/** What a request asks for, of what its client may have. */
function askedIn({ client, params }: KoaContextWithOIDC['oidc'], { directory }: PolicyParts, loaded: Loaded) {
  const offered = directory.offeredTo(String(client?.clientId), loaded)
  return offered === undefined ? new Set<Permission>() : permissionsIn(params ?? {}, offered)
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
