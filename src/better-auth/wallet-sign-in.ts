import type { AuthContext, GenericEndpointContext } from '@better-auth/core'
import { createAuthEndpoint } from 'better-auth/api'
import {
  SignInService,
  type VerifySignInRequest,
  VerifySignInRequestSchema,
} from '../../gen/server/countersign/v1/sign_in_service_pb.ts'
import { type NonceKeeper, type NonceStore, Nonces, withKeysBeginning } from '../core/sign-in/nonce.ts'
import { SignIn, type SignInParts } from '../core/sign-in/sign-in.ts'
import { WalletLinks, type WalletLinksParts } from '../core/sign-in/user-wallets.ts'
import type { Host } from '../core/users/host.ts'
import { sharedKeysWarnings } from '../core/wallet/adapters.ts'
import type { Proof, ProvenIdentity } from '../core/wallet/wallet.ts'
import { limited, methodOf, type UnaryMethod } from '../rpc/methods.ts'
import { signInHandlers } from '../rpc/sign-in-service.ts'
import type { CountersignOptions } from '../service/config.ts'
import { linkPath, signInPaths } from '../shared/rest-paths.ts'
import type { NonceChallenge, NonceRequest, SignInResult } from '../shared/session.ts'
import { keyBeginning } from '../store/map-store.ts'
import { answer, bodyOf, callOf, invoked } from './call.ts'
import { EndpointHost } from './endpoint-host.ts'
import { errorCodes } from './failures.ts'
import { Marks } from './once-marks.ts'
import { limitBodies, originsOf, requestOf } from './request.ts'
import { walletSchema } from './schema.ts'
import { takenBackHooks } from './session-hooks.ts'
import {
  appNameOf,
  checkAtStart,
  rateLimit,
  type WalletOptions,
  type WalletSettings,
  walletSettings,
} from './settings.ts'

/** Options of {@link walletSignIn}. */
export interface WalletSignInOptions
  extends WalletOptions,
    Pick<CountersignOptions, 'endpointPrefix' | 'nonceStore' | 'nonceTtlSeconds' | 'keyPrefix'> {}

/** A wallet that was added to a user as an account. */
export interface LinkedWallet extends Omit<ProvenIdentity, 'subject'> {
  readonly ok: true
}

type NonceBody = NonceRequest & { readonly purpose?: 'sign_in' | 'link' }
type ProofBody = { readonly nonceId: string } & Proof

/**
 * Better Auth's plugin for direct sign-in: a nonce challenge, a wallet's signature over it, a session of Better Auth.
 *
 * - `POST {endpointPrefix}/nonce` and `/verify`: as in the REST interface.
 * - `POST {endpointPrefix}/nonce` with `{"purpose": "link"}`, then `POST {endpointPrefix}/link` with the body of a
 *   verify: add a wallet to the signed-in user. Both need a session that is fresh by Better Auth's `session.freshAge`
 *   and that no order made. Signing in with a wallet never adds it to the user who happens to be signed in.
 *
 * Users are Better Auth's own. A wallet is an account whose `providerId` is the adapter's id and whose `accountId` is
 * the wallet's subject (see `ProvenIdentity`): the public key for `nimiq`, `ed25519` and `solana`. Throws a `TypeError`
 * if an option does not fit.
 */
export function walletSignIn(options: WalletSignInOptions = {}) {
  const settings = walletSettings(options)
  const { endpointPrefix } = settings
  const methodIn = (ctx: GenericEndpointContext, name: 'issueNonce' | 'verifySignIn'): UnaryMethod => {
    const parts = partsOf(ctx, settings)
    return methodOf(SignInService, signInHandlers(new SignIn(parts), new WalletLinks(parts)), name)
  }
  return {
    id: 'wallet-sign-in' as const,
    schema: walletSchema(settings),
    $ERROR_CODES: errorCodes,
    hooks: { after: takenBackHooks },
    options,
    /** Called by Better Auth when it starts. Rejects with a `TypeError` if a check of the adapters says so. */
    init: async (context: AuthContext) => {
      for (const warning of sharedKeysWarnings(settings.walletAdapters)) context.logger.warn(warning)
      await checkAtStart(settings, context)
    },
    onRequest: limitBodies([...Object.values(signInPaths), linkPath].map((path) => endpointPrefix + path)),
    rateLimit: [rateLimit('sign-in', (path) => path.startsWith(`${endpointPrefix}/`))],
    endpoints: {
      issueWalletNonce: createAuthEndpoint(
        `${endpointPrefix}${signInPaths.nonce}` as '/wallet/nonce',
        { method: 'POST', body: bodyOf<NonceBody | undefined>(), metadata: { noStore: true } },
        async (ctx): Promise<NonceChallenge> => await answer(ctx, methodIn(ctx, 'issueNonce'), ctx.body),
      ),
      verifyWalletSignIn: createAuthEndpoint(
        `${endpointPrefix}${signInPaths.verify}` as '/wallet/verify',
        { method: 'POST', body: bodyOf<ProofBody>(), metadata: { noStore: true } },
        async (ctx): Promise<SignInResult> => await answer(ctx, methodIn(ctx, 'verifySignIn'), ctx.body),
      ),
      linkWallet: createAuthEndpoint(
        `${endpointPrefix}${linkPath}` as '/wallet/link',
        { method: 'POST', body: bodyOf<ProofBody>(), metadata: { noStore: true } },
        async (ctx): Promise<LinkedWallet> => {
          const request = requestOf(ctx)
          const handle = async ({ nonceId, ...proof }: VerifySignInRequest): Promise<LinkedWallet> => {
            const links = new WalletLinks(partsOf(ctx, settings))
            const { identity } = await links.link(nonceId, proof, request)
            const { adapterId, publicKeyHex, address } = identity
            return { ok: true, adapterId, publicKeyHex, address }
          }
          const desc = { input: VerifySignInRequestSchema }
          const link = { name: 'better-auth/linkWallet', desc, ...limited('unlimited', handle) }
          return await invoked(ctx, callOf(ctx), link, ctx.body)
        },
      ),
      /**
       * For `betterAuthHost`: runs a step with Better Auth as the host. Callable in this process only, never over HTTP.
       */
      runWithWalletHost: createAuthEndpoint(
        `${endpointPrefix}/host` as '/wallet/host',
        {
          method: 'POST',
          body: bodyOf<{ readonly run: (host: Host) => Promise<unknown> }>(),
          metadata: { SERVER_ONLY: true },
        },
        async (ctx): Promise<unknown> => await ctx.body.run(new EndpointHost(ctx, settings)),
      ),
    },
  }
}

function partsOf(ctx: GenericEndpointContext, settings: WalletSettings): WalletLinksParts & SignInParts {
  const { context } = ctx
  const host = new EndpointHost(ctx, settings)
  const custom = settings.nonceStore
    ? withKeysBeginning(keyBeginning(settings.keyPrefix), settings.nonceStore)
    : verificationNonces(context)
  return {
    nonces: new Nonces({
      appName: appNameOf(settings, context),
      ttlSeconds: settings.nonceTtlSeconds,
      store: usedNonces(context),
      custom,
    }),
    prover: settings.prover,
    origins: originsOf(context, settings),
    host,
    users: host,
  }
}

/** Time for which an expired nonce is kept, in ms, so that a user who took too long gets NONCE_EXPIRED. */
const afterlifeMs = 60_000

/**
 * Nonces as Better Auth's verification values: in its secondary storage if it has one, otherwise in its database.
 * Consuming one is atomic in both.
 */
function verificationNonces({ internalAdapter }: AuthContext): NonceStore {
  const identifierOf = (key: string): string => `countersign:${key}`
  return {
    get: async (key) => (await internalAdapter.findVerificationValue(identifierOf(key)))?.value,
    set: async (key, value, { ttlSeconds }) =>
      await internalAdapter.createVerificationValue({
        identifier: identifierOf(key),
        value,
        expiresAt: new Date(Date.now() + ttlSeconds * 1000 + afterlifeMs),
      }),
    delete: async (key) => await internalAdapter.deleteVerificationByIdentifier(identifierOf(key)),
    take: async (key) => (await internalAdapter.consumeVerificationValue(identifierOf(key)))?.value,
  }
}

/** Marks of used nonces, for an application's own nonce store without an atomic `take`. */
function usedNonces(context: AuthContext): NonceKeeper {
  const unused = async (): Promise<undefined> => undefined
  return {
    now: Date.now,
    async create(key, _value, life) {
      const marks = new Marks(context)
      await marks.sweep()
      return await marks.make(key, new Date(life === 'forever' ? 8.64e15 : Date.now() + life.ttlMs))
    },
    get: unused,
    take: unused,
  }
}
