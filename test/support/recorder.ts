import { type RestAnswer, rest } from './rest.ts'
import { proofOf, type TestWallet } from './wallet.ts'

/** Calls the REST interface as a browser does. */
export interface Recorder {
  /** Everything that was sent and answered. */
  readonly seen: Set<string>
  call(path: string, body?: object, headers?: Record<string, string>): Promise<RestAnswer>
}

/** All texts in an answer that could be secret or somebody's: what has no fixed set of values. */
function textsIn(value: unknown): string[] {
  if (typeof value === 'string') return [value, ...value.split('\n').flatMap((line) => line.split(': ').slice(1))]
  if (typeof value !== 'object' || value === null) return []
  return Object.values(value).flatMap(textsIn)
}

const publicWords =
  /^([A-Z]+(_[A-Z]+)+|nimiq|ethereum|login|sign|created|claimed|waiting_user|approved|finalized|rejected|\/|order\.approve|auth\.login|Countersign.*|http:\/\/localhost:\d+|127\.0\.0\.1|node|\d{1,2})$/

/** Whether a text is no secret, and stands in metrics, logs or traces by right. */
export function isPublic(text: string): boolean {
  return publicWords.test(text)
}

/** Calls as a browser does, and keeps everything that was sent and answered. */
export function recorder(url: string): Recorder {
  const seen = new Set<string>()
  return {
    seen,
    async call(path: string, body?: object, headers: Record<string, string> = {}) {
      const answer = await rest(url, path, body, headers)
      const cookies = answer.headers.getSetCookie().map((cookie) => cookie.split(';')[0]?.split('=')[1] ?? '')
      for (const text of [...textsIn(body), ...textsIn(answer.json), ...textsIn(headers), ...cookies]) seen.add(text)
      return answer
    },
  }
}

/** What a caller sends beside its calls, with texts that must not turn up elsewhere. */
export const from = { 'x-forwarded-for': '203.0.113.77', 'user-agent': 'a browser of the test' }

/** Signs in with a wallet, and approves an order of each kind with it, with every kind of secret and mistake. */
export async function callsWithSecrets({ seen, call }: Recorder, wallet: TestWallet, headers: Record<string, string>) {
  for (const text of [wallet.address, wallet.address.replaceAll(' ', ''), wallet.publicKeyHex]) seen.add(text)
  const nonce = (await call('/wallet/nonce', {}, headers)).json
  const proof = proofOf(wallet, nonce)
  const { token, session } = (await call('/wallet/verify', proof, headers)).json
  await call('/wallet/verify', proof, headers)
  await call('/session', undefined, { authorization: `Bearer ${token}` })
  for (const kind of ['login', 'sign']) {
    const order = (await call('/cross-device/start', { kind, displayTitle: 'A title of the test' }, headers)).json
    const { orderId, claimToken, desktopToken } = order
    const claimed = await call('/cross-device/claim', { orderId, claimToken, claimKey: 'k'.repeat(43) })
    const { challengeToken } = claimed.json
    const bearer = { authorization: `Bearer ${challengeToken}` }
    const { message } = (await call(`/cross-device/challenge?orderId=${orderId}`, undefined, bearer)).json
    const signed = { publicKeyHex: wallet.publicKeyHex, signatureHex: wallet.sign(message) }
    const approved = await call('/cross-device/approve', { orderId, challengeToken, proof: signed })
    await call('/cross-device/finalize', { orderId, desktopToken, returnCode: '000000' })
    await call('/cross-device/finalize', { orderId, desktopToken, returnCode: approved.json.returnCode })
    await call('/cross-device/finalize', { orderId, desktopToken: token })
  }
  return { nonce, proof, token, session }
}
