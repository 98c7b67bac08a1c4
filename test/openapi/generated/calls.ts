// Copied beside the types that openapi-typescript generates, checked there, and run: see
// test/openapi/generated-client.test.ts.
import createClient, { type ClientOptions } from 'openapi-fetch'
import type { components, paths } from './countersign.ts'

type Schemas = components['schemas']

/** Headers of a call, beside those that the client writes. */
type Sent = Readonly<Record<string, string>>

/** The calls of the contract, through a client that knows the service by its OpenAPI document alone. */
export function generatedCalls(options: ClientOptions) {
  const client = createClient<paths>(options)
  return {
    issueNonce: (body: Schemas['IssueNonceRequest'], headers: Sent) =>
      client.POST('/api/auth/wallet/nonce', { body, headers }),
    verifySignIn: (body: Schemas['VerifySignInRequest'], headers: Sent) =>
      client.POST('/api/auth/wallet/verify', { body, headers }),
    startOrder: (body: Schemas['StartOrderRequest'], headers: Sent) =>
      client.POST('/api/auth/cross-device/start', { body, headers }),
    previewOrder: ({ claimToken, ...query }: { orderId: string; claimToken: string }, headers: Sent) =>
      client.GET('/api/auth/cross-device/preview', {
        params: { query },
        headers: { ...headers, authorization: `Bearer ${claimToken}` },
      }),
    claimOrder: (body: Schemas['ClaimOrderRequest'], headers: Sent) =>
      client.POST('/api/auth/cross-device/claim', { body, headers }),
    getOrderChallenge: ({ challengeToken, ...query }: { orderId: string; challengeToken: string }, headers: Sent) =>
      client.GET('/api/auth/cross-device/challenge', {
        params: { query },
        headers: { ...headers, authorization: `Bearer ${challengeToken}` },
      }),
    approveOrder: (body: Schemas['ApproveOrderRequest'], headers: Sent) =>
      client.POST('/api/auth/cross-device/approve', { body, headers }),
    rejectOrder: (body: Schemas['RejectOrderRequest'], headers: Sent) =>
      client.POST('/api/auth/cross-device/reject', { body, headers }),
    cancelOrder: (body: Schemas['CancelOrderRequest'], headers: Sent) =>
      client.POST('/api/auth/cross-device/cancel', { body, headers }),
    finalizeOrder: (body: Schemas['FinalizeOrderRequest'], headers: Sent) =>
      client.POST('/api/auth/cross-device/finalize', { body, headers }),
    watchOrder: (
      { orderId, desktopToken, after }: { orderId: string; desktopToken: string; after?: number },
      headers: Sent,
      signal: AbortSignal,
    ) =>
      client.GET('/api/auth/cross-device/events', {
        params: { query: { orderId }, header: after === undefined ? {} : { 'Last-Event-ID': after } },
        headers: { ...headers, authorization: `Bearer ${desktopToken}` },
        parseAs: 'stream',
        signal,
      }),
    getCurrentSession: (headers: Sent) => client.GET('/api/auth/session', { headers }),
    listSessions: (headers: Sent) => client.GET('/api/auth/sessions', { headers }),
    signOut: (headers: Sent) => client.POST('/api/auth/sign-out', { headers }),
  }
}
