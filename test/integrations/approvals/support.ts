import { randomBytes } from 'node:crypto'
import { fileURLToPath } from 'node:url'
import {
  type ApprovalsOptions,
  type ApprovalWallet,
  createApprovals,
} from '../../../src/integrations/approvals/index.ts'
import type { CountersignOptions } from '../../../src/service/config.ts'
import { run } from '../../support/command.ts'
import { freePort } from '../../support/redis-server.ts'
import { rest } from '../../support/rest.ts'
import { startService } from '../../support/service.ts'
import { makeWallet, proofOf, type TestWallet } from '../../support/wallet.ts'

const startKey = 'a-start-key-of-thirty-two-letters'

/** What a backend knows of the application. */
export const application = { startKey, appName: 'Example', origin: 'https://app.example' } as const

/** A call of REST. Resolves with the answer's JSON, and rejects with the reason as the message. */
export async function call(url: string, path: string, body?: object, token?: string) {
  const { status, json } = await rest(url, path, body, token === undefined ? {} : { authorization: `Bearer ${token}` })
  if (status !== 200) throw new Error(json.code)
  return json
}

/** The reason for which a call is refused; `undefined` if it is not. */
export async function reasonOf(refused: Promise<unknown>): Promise<string | undefined> {
  return await refused.then(
    () => undefined,
    (error: Error & { reason?: string }) => error.reason ?? error.message,
  )
}

/** A user with a session, made by a direct sign-in. */
export class TestUser {
  readonly url: string
  readonly wallet: TestWallet
  readonly id: string
  readonly token: string

  constructor(url: string, wallet: TestWallet, { id, token }: { id: string; token: string }) {
    this.url = url
    this.wallet = wallet
    this.id = id
    this.token = token
  }

  static async signIn(url: string, wallet = makeWallet()): Promise<TestUser> {
    const challenge = await call(url, '/wallet/nonce', {})
    const { session, token } = await call(url, '/wallet/verify', proofOf(wallet, challenge))
    return new TestUser(url, wallet, { id: session.userId, token })
  }

  get wallets(): readonly ApprovalWallet[] {
    return [{ adapterId: 'nimiq', address: this.wallet.address }]
  }

  async inbox(): Promise<string[]> {
    const { orders } = await call(this.url, '/inbox/orders', undefined, this.token)
    return orders.map(({ orderId }: { orderId: string }) => orderId)
  }

  /** Claims an order from the inbox, and reads what is to be signed. */
  async open(orderId: string): Promise<{ readonly challengeToken: string; readonly message: string }> {
    const claimKey = randomBytes(16).toString('base64url')
    const { challengeToken } = await call(this.url, '/inbox/claim', { orderId, claimKey }, this.token)
    const path = `/cross-device/challenge?orderId=${orderId}`
    const { message } = await call(this.url, path, undefined, challengeToken)
    return { challengeToken, message }
  }

  /** Approves, by default with the user's own wallet and what it signs of the order's text. */
  async approve(orderId: string, wallet = this.wallet, sign = (text: string) => wallet.sign(text)): Promise<void> {
    const { challengeToken, message } = await this.open(orderId)
    const proof = { publicKeyHex: wallet.publicKeyHex, signatureHex: sign(message), adapterId: 'nimiq' }
    await call(this.url, '/cross-device/approve', { orderId, challengeToken, proof })
  }

  async reject(orderId: string): Promise<void> {
    const { challengeToken } = await this.open(orderId)
    await call(this.url, '/cross-device/reject', { orderId, challengeToken })
  }

  /** Adds a wallet to the user. */
  async link(wallet: TestWallet): Promise<void> {
    const challenge = await call(this.url, '/wallet/nonce', { purpose: 'link' }, this.token)
    const { nonceId, ...proof } = proofOf(wallet, challenge)
    await call(this.url, '/wallet/link', { nonceId, proof }, this.token)
  }
}

/** A service with a start key, a user, and a backend that asks for approvals. */
export async function startApprovals(options: CountersignOptions = {}) {
  const port = options.port ?? (await freePort())
  const publicUrl = `http://localhost:${port}`
  const { url, service } = await startService({
    appName: application.appName,
    port,
    publicUrl,
    trustedOrigins: [publicUrl, application.origin],
    orderStartKeys: [`agent=${startKey}`],
    ...options,
  })
  const user = await TestUser.signIn(url)
  const backend = (others: Partial<ApprovalsOptions> = {}) => createApprovals({ url, ...application, ...others })
  return { url, service, startKey, user, backend, tool: new Tool() }
}

/** A guarded tool: what it ran, and how it is called. */
class Tool {
  readonly ran: unknown[] = []

  /** Runs the action of a decision, as a backend does. Resolves with why it did not run. */
  async run(decided: Promise<{ approved: true; action: unknown } | { approved: false; why: string }>): Promise<string> {
    try {
      const decision = await decided
      if (!decision.approved) return decision.why
      this.ran.push(decision.action)
      return 'ran'
    } catch (error) {
      return (error as { reason?: string }).reason ?? String(error)
    }
  }
}

/** Goes on with a handle in a process of its own. Resolves with what became of it. */
export async function work(options: object, handle: string, file: string, ...crash: 'crash'[]): Promise<string> {
  const worker = fileURLToPath(new URL('worker.ts', import.meta.url))
  const ended = run(process.execPath, [worker, JSON.stringify(options), handle, file, ...crash])
  return await ended.then(
    ({ stdout }) => stdout.trim(),
    (failed: { signal: string }) => failed.signal,
  )
}
