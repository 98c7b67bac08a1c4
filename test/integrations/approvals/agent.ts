import { randomBytes } from 'node:crypto'
import type { Approval } from '../../../src/integrations/approvals/index.ts'
import { makeWallet, proofOf } from '../../support/wallet.ts'
import { application, call, type TestUser } from './support.ts'

/** What an agent may hold. With each comes the address of the approval, which names the order; but for nothing. */
export const holdings = [
  'nothing',
  'start key',
  'desktop token',
  'approval URL',
  "the user's token",
  'own wallet',
] as const

export type Holding = (typeof holdings)[number]

/** An agent that wants an order approved without the user, or the user's wallets changed. */
export class Agent {
  readonly url: string
  readonly holding: Holding
  readonly user: TestUser
  readonly wallet = makeWallet()
  readonly orderId: string
  readonly bearer: string | undefined
  /** What it has for the token of an order. */
  readonly token: string

  constructor(options: {
    url: string
    holding: Holding
    user: TestUser
    approval: Approval
    desktopToken: string
    bearer: string | undefined
  }) {
    const { url, holding, user, approval, desktopToken, bearer } = options
    this.url = url
    this.holding = holding
    this.user = user
    this.orderId = holding === 'nothing' ? 'A'.repeat(22) : approval.id
    this.bearer = bearer
    this.token = holding === 'desktop token' ? desktopToken : (bearer ?? 'A'.repeat(43))
  }

  /** A token of the phone's side: what the agent gets from the inbox, else what it has. */
  async challengeToken(): Promise<string> {
    const { orderId, claimKey } = this.claim()
    const claimed = await call(this.url, '/inbox/claim', { orderId, claimKey }, this.bearer).catch(() => undefined)
    return claimed?.challengeToken ?? this.token
  }

  /** Its own wallet's signature of what there is to sign. */
  async proof(challengeToken: string): Promise<object> {
    const path = `/cross-device/challenge?orderId=${this.orderId}`
    const challenge = await call(this.url, path, undefined, challengeToken).catch(() => ({ message: 'nothing' }))
    const { publicKeyHex } = this.wallet
    return { publicKeyHex, signatureHex: this.wallet.sign(challenge.message), adapterId: 'nimiq' }
  }

  /** A signature of its own wallet for a sign-in, or to be added to the user of its session. */
  async nonceProof(purpose: 'sign_in' | 'link'): Promise<{ readonly nonceId: string; readonly proof: object }> {
    const nonce = (wanted: string) => call(this.url, '/wallet/nonce', { purpose: wanted }, this.bearer)
    const challenge = await nonce(purpose).catch(() => nonce('sign_in'))
    const { nonceId, ...proof } = proofOf(this.wallet, challenge)
    return { nonceId, proof }
  }

  claim(): { readonly orderId: string; readonly claimKey: string } {
    return { orderId: this.orderId, claimKey: randomBytes(16).toString('base64url') }
  }
}

/** The worst that an agent can send to each RPC. */
export const inputs: Readonly<Record<string, (agent: Agent) => object | Promise<object>>> = {
  'SignInService/IssueNonce': () => ({ purpose: 'NONCE_PURPOSE_LINK' }),
  'SignInService/VerifySignIn': async (agent) => {
    const { nonceId, proof } = await agent.nonceProof('sign_in')
    return { nonceId, ...proof }
  },
  'WalletService/ListWallets': () => ({}),
  'WalletService/LinkWallet': (agent) => agent.nonceProof('link'),
  'WalletService/UnlinkWallet': ({ user }) => ({ adapterId: 'nimiq', address: user.wallet.address }),
  'OrderService/StartOrder': ({ user }) => ({
    kind: 'ORDER_KIND_SIGN',
    payload: '{"typ":"countersign/action","action":{},"nonce":"agent"}',
    inboxUserId: user.id,
    requester: { origin: application.origin },
  }),
  'OrderService/PreviewOrder': ({ orderId, token }) => ({ orderId, claimToken: token }),
  'OrderService/ClaimOrder': ({ orderId, token }) => ({ orderId, claimToken: token }),
  'OrderService/GetOrderChallenge': async (agent) => ({
    orderId: agent.orderId,
    challengeToken: await agent.challengeToken(),
  }),
  'OrderService/ApproveOrder': async (agent) => {
    const challengeToken = await agent.challengeToken()
    return { orderId: agent.orderId, challengeToken, proof: await agent.proof(challengeToken) }
  },
  'OrderService/RejectOrder': async (agent) => ({
    orderId: agent.orderId,
    challengeToken: await agent.challengeToken(),
  }),
  'OrderService/HandOverOrder': async (agent) => ({
    orderId: agent.orderId,
    challengeToken: await agent.challengeToken(),
  }),
  'OrderService/RedeemHandOver': async (agent) => {
    const { orderId } = agent
    const challengeToken = await agent.challengeToken()
    const handedOver = await call(agent.url, '/cross-device/hand-over', { orderId, challengeToken }).catch(() => ({}))
    return { ticket: handedOver.ticket ?? agent.token }
  },
  'OrderService/CancelOrder': ({ orderId, token }) => ({ orderId, desktopToken: token }),
  'OrderService/FinalizeOrder': ({ orderId, token }) => ({ orderId, desktopToken: token, finalizeKey: 'a'.repeat(43) }),
  'OrderService/WatchOrder': ({ orderId, token }) => ({ orderId, desktopToken: token }),
  'InboxService/ListInbox': () => ({}),
  'InboxService/ClaimFromInbox': (agent) => agent.claim(),
  'SessionService/GetCurrentSession': () => ({}),
  'SessionService/ListSessions': () => ({}),
  'SessionService/RevokeSession': async ({ url, user }) => {
    const session = await call(url, '/session', undefined, user.token)
    return { sessionId: session.session.id }
  },
  'SessionService/RevokeOtherSessions': () => ({}),
  'SessionService/SignOut': () => ({}),
  'SessionService/IssueAccessToken': () => ({ audience: 'https://api.example' }),
  'SessionService/IntrospectSession': ({ token }) => ({ token }),
  'SessionService/ListKnownComputers': () => ({}),
  'SessionService/ForgetKnownComputer': () => ({ id: 'A'.repeat(22) }),
  'SessionService/ListConnectedApps': () => ({}),
  'SessionService/DisconnectApp': () => ({ clientId: 'shop' }),
  'Health/Check': () => ({}),
  'Health/List': () => ({}),
  'Health/Watch': () => ({}),
}
