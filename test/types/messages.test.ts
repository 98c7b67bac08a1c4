import type { Message } from '@bufbuild/protobuf'
import { describe, expectTypeOf, test } from 'vitest'
import type * as order from '../../gen/client/countersign/v1/order_service_pb.ts'
import type * as session from '../../gen/client/countersign/v1/session_service_pb.ts'
import type * as signIn from '../../gen/client/countersign/v1/sign_in_service_pb.ts'
import type * as wallet from '../../gen/client/countersign/v1/wallet_service_pb.ts'
import type { FinalizeOrderOptions } from '../../src/browser/client/desktop-orders.ts'
import type { WatchOrderOptions } from '../../src/browser/client/order-watch.ts'
import type { ApproveOrderOptions, ClaimOrderOptions } from '../../src/browser/client/phone-orders.ts'
import type { SignInOptions } from '../../src/browser/client/sign-in.ts'
import type * as client from '../../src/browser/client/types.ts'
import type { WalletProof } from '../../src/browser/client/wallet.ts'
import type { AccessToken } from '../../src/core/access-tokens.ts'
import type { DesktopInput, PhoneInput } from '../../src/core/order/admission.ts'
import type * as domain from '../../src/core/order/orders.ts'
import type { GivenRequester, StartOrder } from '../../src/core/order/start.ts'
import type { OrderEvent } from '../../src/core/order/watch.ts'
import type { NonceRecord } from '../../src/core/sign-in/nonce.ts'
import type { ListedWallet } from '../../src/core/sign-in/user-wallets.ts'
import type * as host from '../../src/core/users/host.ts'
import type { EnumWord } from '../../src/shared/enum-words.ts'

/**
 * The messages of the protos, the types of the client and those of the domain have the same fields. The assertions are
 * that this file compiles: if a field is added to one of them and not to the others, tsc fails here.
 */

type Kind = EnumWord<typeof order.OrderKind>
type Status = EnumWord<typeof order.OrderStatus>

/** The type of a field in REST's JSON: words for enums, numbers for int64. */
type JsonValue<T> = [T] extends [order.OrderKind]
  ? Kind
  : [T] extends [order.OrderStatus]
    ? Status
    : T extends bigint
      ? number
      : T extends Message
        ? Json<T>
        : T

/** A message in REST's JSON. Fields that are `optional` in the protos may be absent, and so may messages. */
type Json<M extends Message> = {
  readonly [Field in keyof M as Exclude<Field, keyof Message>]: JsonValue<Exclude<M[Field], undefined>>
}

/** A type of which these fields are always present. */
type Always<T, Fields extends keyof T> = Flat<Omit<T, Fields> & Required<Pick<T, Fields>>>

/** One object type with the fields of all. */
type Flat<T> = T extends object ? { readonly [Field in keyof T]: T[Field] } : T

/** A type whose optional fields may not be `undefined`. */
type Exact<T> = { readonly [Field in keyof T]: Exclude<T[Field], undefined> }

test('the words of the enums are the client’s', () => {
  expectTypeOf<client.OrderKind>().toEqualTypeOf<Kind>()
  expectTypeOf<client.OrderStatus>().toEqualTypeOf<Status>()
})

describe('what the client’s calls resolve with has the fields of the responses', () => {
  test('direct sign-in', () => {
    expectTypeOf<client.NonceChallenge>().toEqualTypeOf<Json<signIn.IssueNonceResponse>>()
    expectTypeOf<client.SignInResult>().toEqualTypeOf<Always<Json<signIn.VerifySignInResponse>, 'session'>>()
    expectTypeOf<client.Session>().toEqualTypeOf<Json<session.Session>>()
    expectTypeOf<client.UserWallet>().toEqualTypeOf<Json<wallet.Wallet>>()
    expectTypeOf<client.AccessToken>().toEqualTypeOf<Json<session.IssueAccessTokenResponse>>()
  })

  test('orders', () => {
    expectTypeOf<Flat<client.StartedOrder>>().toEqualTypeOf<Json<order.StartOrderResponse>>()
    expectTypeOf<client.OrderPreview>().toEqualTypeOf<Json<order.PreviewOrderResponse>>()
    expectTypeOf<Flat<client.ClaimedOrder>>().toEqualTypeOf<Json<order.ClaimOrderResponse>>()
    expectTypeOf<client.OrderRequester>().toEqualTypeOf<Json<order.OrderRequester>>()
    expectTypeOf<client.OrderChallenge>().toEqualTypeOf<Always<Json<order.GetOrderChallengeResponse>, 'requester'>>()
    expectTypeOf<Flat<client.ApprovedOrder>>().toEqualTypeOf<Json<order.ApproveOrderResponse>>()
    expectTypeOf<Flat<client.RejectedOrder>>().toEqualTypeOf<Json<order.RejectOrderResponse>>()
    expectTypeOf<client.HandOver>().toEqualTypeOf<Json<order.HandOverOrderResponse>>()
    expectTypeOf<Flat<Omit<client.ClaimedOrder, 'ok'>>>().toEqualTypeOf<Json<order.RedeemHandOverResponse>>()
    expectTypeOf<client.KnownComputer>().toEqualTypeOf<Json<session.KnownComputer>>()
    expectTypeOf<client.OrderState>().toEqualTypeOf<Json<order.CancelOrderResponse>>()
    expectTypeOf<client.OrderEvent>().toEqualTypeOf<Omit<Json<order.WatchOrderResponse>, 'heartbeat' | 'reconnect'>>()
  })

  test('a finalized order, of which each kind has fields of its own', () => {
    type Finalized = Omit<Json<order.FinalizeOrderResponse>, 'kind'>
    type Login = Extract<client.FinalizedOrder, { kind: 'login' }>
    type Sign = Extract<client.FinalizedOrder, { kind: 'sign' }>
    expectTypeOf<client.FinalizedOrder['kind']>().toEqualTypeOf<Kind>()
    expectTypeOf<Flat<Omit<Login, 'kind'>>>().toEqualTypeOf<
      Always<Omit<Finalized, 'proofArtifact'>, 'token' | 'session'>
    >()
    expectTypeOf<Flat<Omit<Sign, 'kind'>>>().toEqualTypeOf<
      Always<Omit<Finalized, 'token' | 'session'>, 'proofArtifact'>
    >()
    expectTypeOf<client.ProofArtifact>().toEqualTypeOf<Json<order.ProofArtifact>>()
  })
})

describe('what the client’s calls take has the fields of the requests', () => {
  test('direct sign-in', () => {
    expectTypeOf<Flat<client.NonceRequest>>().toEqualTypeOf<Omit<Json<signIn.IssueNonceRequest>, 'purpose'>>()
    expectTypeOf<Pick<SignInOptions, 'appName'>>().toEqualTypeOf<
      Optional<Pick<Json<signIn.IssueNonceRequest>, 'appName'>>
    >()
    expectTypeOf<Flat<WalletProof & { readonly nonceId: string }>>().toEqualTypeOf<Json<signIn.VerifySignInRequest>>()
  })

  test('orders', () => {
    expectTypeOf<client.StartOrderOptions>().toEqualTypeOf<Json<order.StartOrderRequest>>()
    expectTypeOf<
      Flat<{ readonly orderId: string; readonly claimToken: string } & Pick<ClaimOrderOptions, 'claimKey'>>
    >().toEqualTypeOf<Optional<Json<order.ClaimOrderRequest>>>()
    expectTypeOf<Flat<client.PhoneOrder & Partial<client.SigningAccount>>>().toEqualTypeOf<
      Json<order.GetOrderChallengeRequest>
    >()
    expectTypeOf<Flat<WalletProof>>().toEqualTypeOf<Json<order.OrderProof>>()
    expectTypeOf<
      Flat<client.PhoneOrder & { readonly proof: Flat<WalletProof> } & Pick<ApproveOrderOptions, 'rememberComputer'>>
    >().toEqualTypeOf<Optional<Always<Json<order.ApproveOrderRequest>, 'proof'>>>()
    expectTypeOf<client.PhoneOrder>().toEqualTypeOf<Json<order.RejectOrderRequest>>()
    expectTypeOf<client.DesktopOrder>().toEqualTypeOf<Json<order.CancelOrderRequest>>()
    expectTypeOf<Flat<client.DesktopOrder & Pick<FinalizeOrderOptions, 'returnCode'>>>().toEqualTypeOf<
      Optional<Omit<Json<order.FinalizeOrderRequest>, 'computerProof'>>
    >()
    expectTypeOf<Flat<client.DesktopOrder & Pick<WatchOrderOptions, 'afterSequence'>>>().toEqualTypeOf<
      Optional<Json<order.WatchOrderRequest>>
    >()
  })
})

/** A type whose optional fields may also be `undefined`, as the options of calls may. */
type Optional<T> = { readonly [Field in keyof T]: undefined extends T[Field] ? T[Field] | undefined : T[Field] }

describe('what the domain answers has the fields that the client resolves with', () => {
  test('direct sign-in', () => {
    expectTypeOf<Widened<Omit<NonceRecord, 'v' | 'appName' | 'userId'>>>().toEqualTypeOf<client.NonceChallenge>()
    expectTypeOf<Omit<host.Session, 'computerId'>>().toEqualTypeOf<Omit<client.Session, 'current'>>()
    expectTypeOf<Flat<Omit<ListedWallet, 'subject'>>>().toEqualTypeOf<client.UserWallet>()
    expectTypeOf<AccessToken>().toEqualTypeOf<client.AccessToken>()
  })

  test('orders', () => {
    expectTypeOf<Exact<Omit<StartOrder, 'requester'>>>().toEqualTypeOf<Omit<client.StartOrderOptions, 'requester'>>()
    expectTypeOf<Exact<GivenRequester>>().toEqualTypeOf<client.StartOrderRequester>()
    expectTypeOf<domain.StartedOrder>().toEqualTypeOf<Flat<client.StartedOrder>>()
    expectTypeOf<domain.OrderState>().toEqualTypeOf<Omit<client.OrderState, 'ok'>>()
    expectTypeOf<Flat<domain.ApprovedOrder>>().toEqualTypeOf<Flat<Omit<client.ApprovedOrder, 'ok'>>>()
    expectTypeOf<Flat<domain.RejectedOrder>>().toEqualTypeOf<Flat<Omit<client.RejectedOrder, 'ok'>>>()
    expectTypeOf<domain.HandOver>().toEqualTypeOf<client.HandOver>()
    expectTypeOf<Flat<domain.ClaimedOrder>>().toEqualTypeOf<Flat<Omit<client.ClaimedOrder, 'ok'>>>()
    expectTypeOf<Widened<domain.OrderChallenge>>().toEqualTypeOf<client.OrderChallenge>()
    expectTypeOf<Omit<OrderEvent, 'heartbeat' | 'reconnect'>>().toEqualTypeOf<client.OrderEvent>()
    expectTypeOf<Flat<domain.ProofArtifact>>().toEqualTypeOf<client.ProofArtifact>()
    expectTypeOf<PhoneInput>().toEqualTypeOf<client.PhoneOrder>()
    expectTypeOf<DesktopInput>().toEqualTypeOf<client.DesktopOrder>()
  })
})

/** A challenge whose action is any text, as for clients, which may be older than the service. */
type Widened<T extends { readonly action: string }> = {
  readonly [Field in keyof T]: Field extends 'action' ? string : T[Field]
}
