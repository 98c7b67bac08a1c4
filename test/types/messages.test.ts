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
import type { WalletProof } from '../../src/browser/client/wallet.ts'
import type { NonceRecord } from '../../src/core/sign-in/nonce.ts'
import type { ListedWallet } from '../../src/core/sign-in/user-wallets.ts'
import type { FormFields } from '../../src/core/wallet/sign-in-form.ts'
import type { EnumWord } from '../../src/shared/enum-words.ts'
import type * as orders from '../../src/shared/orders.ts'
import type * as sessions from '../../src/shared/session.ts'

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
        : T extends (infer Item)[]
          ? readonly Item[]
          : T

/** A message in REST's JSON. Fields that are `optional` in the protos may be absent, and so may messages. */
type Json<M extends Message> = {
  readonly [Field in keyof M as Exclude<Field, keyof Message>]: JsonValue<Exclude<M[Field], undefined>>
}

/** A type of which these fields are always present. */
type Always<T, Fields extends keyof T> = Flat<Omit<T, Fields> & Required<Pick<T, Fields>>>

/** One object type with the fields of all. */
type Flat<T> = T extends object ? { readonly [Field in keyof T]: T[Field] } : T

test('the words of the enums are the client’s', () => {
  expectTypeOf<orders.OrderKind>().toEqualTypeOf<Kind>()
  expectTypeOf<orders.OrderStatus>().toEqualTypeOf<Status>()
})

describe('what the client’s calls resolve with has the fields of the responses', () => {
  test('direct sign-in', () => {
    expectTypeOf<sessions.NonceChallenge>().toEqualTypeOf<Json<signIn.IssueNonceResponse>>()
    expectTypeOf<sessions.SignInResult>().toEqualTypeOf<Always<Json<signIn.VerifySignInResponse>, 'session'>>()
    expectTypeOf<sessions.Session>().toEqualTypeOf<Json<session.Session>>()
    expectTypeOf<sessions.UserWallet>().toEqualTypeOf<Json<wallet.Wallet>>()
    expectTypeOf<sessions.AccessToken>().toEqualTypeOf<Json<session.IssueAccessTokenResponse>>()
  })

  test('orders', () => {
    expectTypeOf<Flat<orders.StartedOrder>>().toEqualTypeOf<Json<order.StartOrderResponse>>()
    expectTypeOf<orders.OrderPreview>().toEqualTypeOf<Json<order.PreviewOrderResponse>>()
    expectTypeOf<Flat<orders.ClaimedOrder>>().toEqualTypeOf<Json<order.ClaimOrderResponse>>()
    expectTypeOf<orders.OrderRequester>().toEqualTypeOf<Json<order.OrderRequester>>()
    expectTypeOf<orders.OrderChallenge>().toEqualTypeOf<Always<Json<order.GetOrderChallengeResponse>, 'requester'>>()
    expectTypeOf<Flat<orders.ApprovedOrder>>().toEqualTypeOf<Json<order.ApproveOrderResponse>>()
    expectTypeOf<Flat<orders.RejectedOrder>>().toEqualTypeOf<Json<order.RejectOrderResponse>>()
    expectTypeOf<orders.HandOver>().toEqualTypeOf<Json<order.HandOverOrderResponse>>()
    expectTypeOf<Flat<Omit<orders.ClaimedOrder, 'ok'>>>().toEqualTypeOf<Json<order.RedeemHandOverResponse>>()
    expectTypeOf<sessions.KnownComputer>().toEqualTypeOf<Json<session.KnownComputer>>()
    expectTypeOf<orders.OrderState>().toEqualTypeOf<Json<order.CancelOrderResponse>>()
    expectTypeOf<orders.OrderEvent>().toEqualTypeOf<Omit<Json<order.WatchOrderResponse>, 'heartbeat' | 'reconnect'>>()
  })

  test('a finalized order, of which each kind has fields of its own', () => {
    type Finalized = Omit<Json<order.FinalizeOrderResponse>, 'kind'>
    type Login = Extract<orders.FinalizedOrder, { kind: 'login' }>
    type Sign = Extract<orders.FinalizedOrder, { kind: 'sign' }>
    type Link = Extract<orders.FinalizedOrder, { kind: 'link' }>
    expectTypeOf<orders.FinalizedOrder['kind']>().toEqualTypeOf<Kind>()
    expectTypeOf<Flat<Omit<Login, 'kind'>>>().toEqualTypeOf<
      Always<Omit<Finalized, 'proofArtifact' | 'wallet'>, 'token' | 'session'>
    >()
    expectTypeOf<Flat<Omit<Sign, 'kind'>>>().toEqualTypeOf<
      Always<Omit<Finalized, 'token' | 'session' | 'wallet'>, 'proofArtifact'>
    >()
    expectTypeOf<Flat<Omit<Link, 'kind'>>>().toEqualTypeOf<
      Always<Omit<Finalized, 'token' | 'session' | 'proofArtifact'>, 'wallet'>
    >()
    expectTypeOf<orders.ProofArtifact>().toEqualTypeOf<Json<order.ProofArtifact>>()
  })
})

describe('what the client’s calls take has the fields of the requests', () => {
  test('direct sign-in', () => {
    expectTypeOf<Flat<sessions.NonceRequest>>().toEqualTypeOf<Omit<Json<signIn.IssueNonceRequest>, 'purpose'>>()
    expectTypeOf<Pick<SignInOptions, 'appName'>>().toEqualTypeOf<
      Optional<Pick<Json<signIn.IssueNonceRequest>, 'appName'>>
    >()
    expectTypeOf<Flat<WalletProof & { readonly nonceId: string }>>().toEqualTypeOf<Json<signIn.VerifySignInRequest>>()
  })

  test('orders', () => {
    expectTypeOf<Omit<orders.StartOrderOptions, 'requester'>>().toEqualTypeOf<
      Optional<Omit<Json<order.StartOrderRequest>, 'requester'>>
    >()
    expectTypeOf<orders.StartOrderRequester>().toEqualTypeOf<
      Optional<NonNullable<Json<order.StartOrderRequest>['requester']>>
    >()
    expectTypeOf<
      Flat<{ readonly orderId: string; readonly claimToken: string } & Pick<ClaimOrderOptions, 'claimKey'>>
    >().toEqualTypeOf<Optional<Json<order.ClaimOrderRequest>>>()
    expectTypeOf<Flat<orders.PhoneOrder & Partial<sessions.SigningAccount>>>().toEqualTypeOf<
      Json<order.GetOrderChallengeRequest>
    >()
    expectTypeOf<Flat<WalletProof>>().toEqualTypeOf<Json<order.OrderProof>>()
    expectTypeOf<
      Flat<orders.PhoneOrder & { readonly proof: Flat<WalletProof> } & Pick<ApproveOrderOptions, 'rememberComputer'>>
    >().toEqualTypeOf<Optional<Always<Json<order.ApproveOrderRequest>, 'proof'>>>()
    expectTypeOf<orders.PhoneOrder>().toEqualTypeOf<Json<order.RejectOrderRequest>>()
    expectTypeOf<orders.DesktopOrder>().toEqualTypeOf<Json<order.CancelOrderRequest>>()
    expectTypeOf<Flat<orders.DesktopOrder & Pick<FinalizeOrderOptions, 'returnCode'>>>().toEqualTypeOf<
      Optional<Omit<Json<order.FinalizeOrderRequest>, 'computerProof' | 'finalizeKey'>>
    >()
    expectTypeOf<Flat<orders.DesktopOrder & Pick<WatchOrderOptions, 'afterSequence'>>>().toEqualTypeOf<
      Optional<Json<order.WatchOrderRequest>>
    >()
  })
})

/** A type whose optional fields may also be `undefined`, as the options of calls may. */
type Optional<T> = { readonly [Field in keyof T]: undefined extends T[Field] ? T[Field] | undefined : T[Field] }

test('what the domain answers to a direct sign-in has the fields that the client resolves with', () => {
  type Answered = Widened<Omit<NonceRecord, 'v' | 'appName' | 'userId' | 'named'>>
  expectTypeOf<Answered & { readonly form?: FormFields }>().toExtend<sessions.NonceChallenge>()
  expectTypeOf<keyof FormFields>().toEqualTypeOf<keyof sessions.SignInForm>()
  expectTypeOf<Flat<Omit<ListedWallet, 'subject'>>>().toEqualTypeOf<sessions.UserWallet>()
})

/** A challenge whose action is any text, as for clients, which may be older than the service. */
type Widened<T extends { readonly action: string }> = {
  readonly [Field in keyof T]: Field extends 'action' ? string : T[Field]
}
