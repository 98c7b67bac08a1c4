import type { DescMethod } from '@bufbuild/protobuf'
import { InboxService } from '../../gen/server/countersign/v1/inbox_service_pb.ts'
import { OrderService } from '../../gen/server/countersign/v1/order_service_pb.ts'
import { SessionService } from '../../gen/server/countersign/v1/session_service_pb.ts'
import { SignInService } from '../../gen/server/countersign/v1/sign_in_service_pb.ts'
import { WalletService } from '../../gen/server/countersign/v1/wallet_service_pb.ts'
import { endpoints, rpcs } from '../../scripts/docs/services.ts'
import { silentLogger } from '../../src/base/log.ts'
import { createCountersign, openStore } from '../../src/index.ts'
import { makeTestWallet, type TestWallet } from '../../src/integrations/testing/index.ts'
import type { CountersignOptions } from '../../src/service/config.ts'
import { defaultKeyPrefix, withKeyPrefix } from '../../src/store/map-store.ts'
import { administrationOn } from '../core/users/support.ts'

/** What a call answered: over REST if it has an endpoint, and as Connect's JSON otherwise. */
export interface Answer {
  readonly rpc: DescMethod
  readonly overRest: boolean
  readonly body: Readonly<Record<string, unknown>>
  /** Why it failed; `undefined` if it did not. */
  readonly reason: string | undefined
}

type Fields = Readonly<Record<string, unknown>>
type Headers = Readonly<Record<string, string>>

/** Audience that the service issues access tokens for. */
const audience = 'https://api.example'

/** A wallet that an operator has blocked. */
const blocked = makeTestWallet()

const foreignPage: Headers = { origin: 'https://evil.example' }

/**
 * Makes every call of a service with these settings, in most states of an order and of a session, with right and wrong
 * tokens, from right and wrong pages; and those that take a proof with one of a wallet that is blocked.
 */
export async function everyCall(settings: CountersignOptions): Promise<readonly Answer[]> {
  const store = await openStore('sqlite::memory:')
  const administration = administrationOn(withKeyPrefix(store, defaultKeyPrefix))
  await administration.block({ ...blocked, subject: blocked.publicKeyHex })
  const service = await createCountersign({
    store,
    port: 0,
    rateLimit: false,
    logger: silentLogger,
    accessTokens: { audiences: [audience] },
    ...settings,
  })
  try {
    return await callsOf(`http://localhost:${await service.listen()}`)
  } finally {
    await service.close(0)
    await store.close()
  }
}

async function callsOf(url: string): Promise<readonly Answer[]> {
  const caller = new Caller(url)
  for (const rpc of rpcs) for (const fields of [{}, unknown]) await caller.call(rpc, fields)
  await signInsAndSessions(caller)
  for (const rpc of OrderService.methods) {
    const inState = async (state: string): Promise<void> => {
      await callInState(caller, rpc, { state, kind: 'login' })
      await callInState(caller, rpc, { state, kind: 'sign' })
      await callInState(caller, rpc, { state, kind: 'login', headers: foreignPage })
      await callInState(caller, rpc, { state, kind: 'login', fields: wrongTokens })
      await callInState(caller, rpc, { state, kind: 'login', fields: otherPhone })
      await callInState(caller, rpc, { state, kind: 'login', signer: blocked })
    }
    await Promise.all(Object.keys(stepsTo).map(inState))
  }
  return caller.answers
}

/** Fields of the right form that name nothing that exists. */
const unknown: Fields = {
  claimKey: 'a-claim-key-of-an-unknown-order',
  nonceId: 'unknown',
  orderId: 'unknown',
  sessionId: 'unknown',
  id: 'unknown',
  adapterId: 'unknown',
  address: 'unknown',
  kind: 'ORDER_KIND_LOGIN',
  token: 'unknown',
  audience: 'https://unknown.example',
  appName: 'Another application',
  proof: { publicKeyHex: '00', signatureHex: '00' },
}

const wrongTokens: Fields = { claimToken: 'wrong', challengeToken: 'wrong', desktopToken: 'wrong', ticket: 'wrong' }

/** A phone with another claim key and another wallet, whose user has entered no code, as the desktop's has not. */
const otherPhone: Fields = {
  claimKey: 'another-phone-has-another-key',
  proof: { publicKeyHex: '00'.repeat(32), signatureHex: '00'.repeat(64) },
  returnCode: undefined,
}

/** The calls that take a new order to a state. */
const stepsTo: Readonly<Record<string, readonly DescMethod[]>> = (() => {
  const { startOrder, claimOrder, getOrderChallenge, approveOrder, finalizeOrder } = OrderService.method
  const { rejectOrder, cancelOrder, handOverOrder } = OrderService.method
  const created = [startOrder]
  const claimed = [...created, claimOrder, handOverOrder]
  const waiting = [...claimed, getOrderChallenge]
  const approved = [...waiting, approveOrder]
  const finalized = [...approved, finalizeOrder]
  return {
    created,
    claimed,
    waiting,
    approved,
    finalized,
    takenBack: [...finalized, rejectOrder],
    rejected: [...claimed, rejectOrder],
    cancelled: [...claimed, cancelOrder],
  }
})()

/** Makes calls, and keeps their answers. */
class Caller {
  readonly answers: Answer[] = []
  readonly #url: string

  constructor(url: string) {
    this.#url = url
  }

  /** Makes a call with the fields that it knows. Returns the body of the answer. */
  async call(rpc: DescMethod, fields: Fields, headers: Headers = {}): Promise<Fields> {
    const endpoint = endpoints.find((each) => each.rpc === rpc)
    const path = endpoint === undefined ? `/${rpc.parent.typeName}/${rpc.name}` : `/api/auth${endpoint.path}`
    const response =
      endpoint?.httpMethod === 'GET'
        ? await this.#get(path, fields, headers)
        : await fetch(this.#url + path, {
            method: 'POST',
            headers: { 'content-type': 'application/json', ...headers },
            body: JSON.stringify(fields),
          })
    const body = (await response.json()) as Fields
    const reason = response.ok ? undefined : reasonOf(body, endpoint !== undefined)
    this.answers.push({ rpc, overRest: endpoint !== undefined, body, reason })
    return body
  }

  async #get(path: string, fields: Fields, headers: Headers): Promise<Response> {
    const field = path.endsWith('/events')
      ? 'desktopToken'
      : path.endsWith('/preview')
        ? 'claimToken'
        : 'challengeToken'
    const token = fields[field]
    const bearer: Headers = token === undefined ? {} : { authorization: `Bearer ${token}` }
    const query = new URLSearchParams({ orderId: String(fields.orderId ?? ''), wait: '0' })
    return await fetch(`${this.#url}${path}?${query}`, {
      headers: { accept: 'application/json', ...bearer, ...headers },
    })
  }
}

function reasonOf(body: Fields, overRest: boolean): string {
  if (overRest) return body.code as string
  const [{ debug }] = body.details as [{ debug: { reason: string } }]
  return debug.reason
}

interface OrderCall {
  readonly state: string
  readonly kind: 'login' | 'sign'
  readonly headers?: Headers
  readonly fields?: Fields
  /** Wallet of the phone; a new one if it is absent. */
  readonly signer?: TestWallet
}

/** Takes a new order to a state, or as far towards it as its wallet is allowed to, and makes a call for it there. */
async function callInState(
  caller: Caller,
  rpc: DescMethod,
  { state, kind, headers, fields, signer: wallet = makeTestWallet() }: OrderCall,
): Promise<void> {
  let known: Fields = { kind, claimKey: crypto.randomUUID() }
  for (const step of stepsTo[state] ?? []) {
    known = { ...known, ...(await caller.call(step, known)) }
    if (step === OrderService.method.getOrderChallenge) known = { ...known, proof: proofOf(wallet, known) }
  }
  // A field of a request has the name that it had in the answer which told it, so each call finds its own here.
  await caller.call(rpc, { ...known, ...fields }, headers)
}

function proofOf({ adapterId, publicKeyHex, sign }: TestWallet, { message }: Fields): Fields {
  return { adapterId, publicKeyHex, signatureHex: sign(String(message)) }
}

async function signInsAndSessions(caller: Caller): Promise<void> {
  const { issueNonce, verifySignIn } = SignInService.method
  const { listWallets, linkWallet, unlinkWallet } = WalletService.method
  const wallet = makeTestWallet()
  const signIn = async (signer = wallet): Promise<Headers> => {
    const challenge = await caller.call(issueNonce, {})
    const { token } = await caller.call(verifySignIn, { ...challenge, ...proofOf(signer, challenge) })
    return { authorization: `Bearer ${token}` }
  }
  const challenge = await caller.call(issueNonce, {})
  await caller.call(verifySignIn, { ...challenge, ...proofOf(wallet, challenge) }, foreignPage)
  await caller.call(verifySignIn, { ...challenge, ...proofOf(wallet, challenge), signatureHex: '00'.repeat(64) })
  const user = await signIn()
  const link = async (added: TestWallet): Promise<Fields> => {
    const text = await caller.call(issueNonce, { purpose: 'link' }, user)
    return await caller.call(linkWallet, { ...text, proof: proofOf(added, text) }, user)
  }
  const second = makeTestWallet({ adapterId: 'ed25519' })
  await link(second)
  await link(blocked)
  await signIn(blocked)
  await caller.call(listWallets, {}, user)
  for (const rpc of InboxService.methods) {
    await caller.call(rpc, unknown, user)
    await caller.call(rpc, unknown, { cookie: 'countersign_session=css_wrong' })
    await caller.call(rpc, unknown, { cookie: 'countersign_session=css_wrong', ...foreignPage })
  }
  for (const { adapterId, address } of [second, second, wallet]) {
    await caller.call(unlinkWallet, { adapterId, address }, user)
  }
  for (const rpc of SessionService.methods.filter(({ name }) => name !== 'SignOut')) {
    const { session } = await caller.call(SessionService.method.getCurrentSession, {}, await signIn())
    const { id } = session as { id: string }
    await caller.call(rpc, { id, sessionId: id, audience, clientId: 'shop' }, user)
    await caller.call(rpc, unknown, user)
    const cookie = { cookie: user.authorization?.replace('Bearer ', 'countersign_session=') ?? '' }
    await caller.call(rpc, {}, { ...cookie, ...foreignPage })
    await caller.call(rpc, {}, { authorization: 'Bearer css_wrong' })
  }
  await caller.call(SessionService.method.signOut, {}, user)
}
