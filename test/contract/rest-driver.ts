import { readEventStream } from '../../src/browser/client/event-stream.ts'
import {
  appOrigin,
  type CallName,
  type ContractDriver,
  type Credential,
  EventsRefused,
  type Outcome,
} from './driver.ts'

const paths: Record<CallName, string> = {
  issueNonce: '/wallet/nonce',
  verifySignIn: '/wallet/verify',
  startOrder: '/cross-device/start',
  previewOrder: '/cross-device/preview',
  claimOrder: '/cross-device/claim',
  getOrderChallenge: '/cross-device/challenge',
  approveOrder: '/cross-device/approve',
  rejectOrder: '/cross-device/reject',
  cancelOrder: '/cross-device/cancel',
  finalizeOrder: '/cross-device/finalize',
}

/** The contract's calls over REST, at the path that both hosts have them under. */
export function restCalls(url: string): Pick<ContractDriver, 'ownOrigin' | 'call' | 'watch'> {
  const root = `${url}/api/auth`
  return {
    ownOrigin: url,
    async call(name, input, origin = appOrigin): Promise<Outcome> {
      if (name === 'getOrderChallenge' || name === 'previewOrder') {
        const { orderId, ...tokens } = input as { orderId: string; challengeToken?: string; claimToken?: string }
        const query = new URLSearchParams({ orderId })
        return await outcome(
          await fetch(`${root}${paths[name]}?${query}`, {
            headers: { origin, authorization: `Bearer ${tokens.challengeToken ?? tokens.claimToken}` },
          }),
        )
      }
      return await outcome(
        await fetch(root + paths[name], {
          method: 'POST',
          headers: { origin, 'content-type': 'application/json' },
          body: JSON.stringify(input),
        }),
      )
    },
    async *watch(input, signal, origin = appOrigin) {
      const { orderId, desktopToken, afterSequence } = input as Record<string, string | undefined>
      const response = await fetch(`${root}/cross-device/events?${new URLSearchParams({ orderId: orderId ?? '' })}`, {
        headers: {
          origin,
          authorization: `Bearer ${desktopToken}`,
          ...(afterSequence === undefined ? {} : { 'last-event-id': String(afterSequence) }),
        },
        signal,
      })
      if (response.status === 204) return
      if (!response.ok) throw new EventsRefused((await outcome(response)).reason ?? '')
      if (response.body !== null) for await (const { data } of readEventStream(response.body)) yield JSON.parse(data)
    },
  }
}

/** The headers that show a session. */
export function credentialHeaders(credential: Credential, origin = appOrigin): Record<string, string> {
  return 'bearer' in credential
    ? { authorization: `Bearer ${credential.bearer}` }
    : { cookie: credential.cookie, origin }
}

async function outcome(response: Response): Promise<Outcome> {
  const text = await response.text()
  const json = text === '' ? undefined : JSON.parse(text)
  const { headers } = response
  return response.ok ? { json, headers } : { reason: json?.code ?? `HTTP ${response.status}: ${text}`, json, headers }
}
