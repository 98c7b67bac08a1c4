/**
 * The public API for backends. Everything that is not listed here is private. It needs nothing of Node, so it runs on
 * edge runtimes. Guards for frameworks are in subpaths of their own: `countersign/backend/connect`, `/express`,
 * `/fastify`, `/grpc` and `/hono`.
 */

export type { BaseSession } from '../../shared/session.ts'
export {
  type AccessTokenClaims,
  AccessTokenError,
  type AccessTokenErrorReason,
  type AccessTokenWallet,
  type SessionTokenClaims,
  type VerifyAccessTokenOptions,
  verifyAccessToken,
} from './access-token.ts'
export type { Fetcher, SessionSource } from './introspection.ts'
export {
  type AuthInfo,
  type ProtectedResource,
  type ProtectedResourceOptions,
  protectedResource,
  type ResourceAnswer,
  type ResourceCheck,
  type ResourceMetadata,
  type ResourceRequest,
  type ResourceResponse,
} from './protected-resource.ts'
export type { GuardOptions } from './refusal.ts'
export type { FetchRequest, NodeRequest, RequestInput } from './request.ts'
export {
  type Session,
  SessionCheckError,
  type SessionCheckErrorOptions,
  type SessionCheckErrorReason,
} from './session.ts'
export {
  createSessionVerifier,
  type LocalSessionVerifierOptions,
  type RemoteSessionVerifierOptions,
  type SessionCheckOptions,
  type SessionVerifier,
  type SessionVerifierOptions,
} from './session-verifier.ts'
