import { createHash } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import { join } from 'node:path'
import { afterEach, describe, expect, test, vi } from 'vitest'
import { canonicalPayload } from '../../../src/core/order/canonical-payload.ts'
import {
  type ApprovalRequest,
  type ApprovalsOptions,
  createApprovals,
} from '../../../src/integrations/approvals/index.ts'
import { listening } from '../../support/listening.ts'
import { temporaryFolder } from '../../support/temporary-folder.ts'
import { makeWallet, type TestWallet } from '../../support/wallet.ts'
import { work } from './support.ts'

afterEach(() => void vi.useRealTimers())

const owner = makeWallet()
const options: ApprovalsOptions = {
  url: 'http://localhost:1',
  startKey: 'a-start-key-of-thirty-two-letters',
  appName: 'Example',
  origin: 'https://app.example',
  adapters: ['nimiq', 'ed25519'],
}
const request: ApprovalRequest = {
  userId: 'user',
  wallets: [{ adapterId: 'nimiq', address: owner.address }],
  title: 'Delete',
  action: { tool: 'delete', path: '/tmp' },
}

const dayMs = 24 * 3_600_000

/** What a service that may be a liar answers: by default, what an honest one does whose user has approved. */
interface Answers {
  readonly events?: (poll: number, signal: AbortSignal) => Response | Promise<Response>
  /** Name of the service, as its options say it. */
  readonly appName?: unknown
  readonly finalize?: (payload: string, signal: AbortSignal) => Response | Promise<Response>
}

const step = (status: string, sequence = 4): Response => Response.json({ events: [{ sequence, status }] })

/** An approval at such a service, and what was sent to it. */
async function askAt(
  { events = () => step('approved'), finalize = finalized(), appName = 'Example' }: Answers,
  more: Partial<ApprovalsOptions> = {},
) {
  const sent: { path: string; body: Record<string, unknown>; authorization: string | null }[] = []
  let payload = ''
  let polls = 0
  const fetch = async (url: string, init: RequestInit): Promise<Response> => {
    const path = new URL(url).pathname.replace('/api/auth/cross-device/', '')
    const body = init.body === undefined ? {} : JSON.parse(String(init.body))
    if (url.endsWith('/api/auth/options')) return Response.json({ appName })
    sent.push({ path, body, authorization: new Headers(init.headers).get('authorization') })
    if (path === 'start') {
      payload = body.payload
      const approvalUrl = 'https://sign.example/api/auth/inbox?order=one'
      return Response.json({ orderId: 'one', desktopToken: 'token', approvalUrl, expiresAt: 1 })
    }
    polls += path === 'events' ? 1 : 0
    return path === 'events' ? await events(polls, init.signal!) : await finalize(payload, init.signal!)
  }
  const approvals = createApprovals({ ...options, fetch, ...more })
  return { approval: await approvals.ask(request), approvals, sent, polls: () => polls }
}

/** The answer of a finalized order, as the wallet signs it, with changes to the signed text and to the artifact. */
function finalized(change: { wallet?: TestWallet; text?: (text: string) => string; artifact?: object } = {}) {
  return (payload: string): Response => Response.json({ proofArtifact: artifactOf(payload, change) })
}

function artifactOf(
  payload: string,
  change: { wallet?: TestWallet; text?: (text: string) => string; artifact?: object },
) {
  const { wallet = owner, text = (same) => same, artifact } = change
  const canonical = canonicalPayload(payload)
  const lines = [
    'Example requests approval',
    'Action: order.approve',
    'Origin: https://app.example',
    'Challenge ID: challenge',
    'Nonce: nonce',
    'Issued At: 2026-01-01T00:00:00.000Z',
    'Expires At: 2026-01-01T01:00:00.000Z',
    'Order ID: one',
    'Kind: sign',
    `Payload Hash: sha256:${createHash('sha256').update(canonical).digest('base64url')}`,
    `Payload: ${canonical}`,
    'Title: Delete',
  ]
  const message = text(lines.join('\n'))
  const { publicKeyHex, address } = wallet
  const signatureHex = wallet.sign(message)
  return { publicKeyHex, signatureHex, address, message, adapterId: 'nimiq', payload: canonical, ...artifact }
}

test('the proof of an honest service is an approval, of the action and the wallet', async () => {
  const { approval, sent } = await askAt({})
  expect(approval).toMatchObject({ id: 'one', url: 'https://sign.example/api/auth/inbox?order=one', expiresAt: 1 })
  expect(await approval.decision()).toMatchObject({
    approved: true,
    action: request.action,
    wallet: request.wallets[0],
    artifact: { adapterId: 'nimiq' },
  })
  expect(sent.map(({ path, authorization }) => [path, authorization])).toEqual([
    ['start', `Bearer ${options.startKey}`],
    ['events', 'Bearer token'],
    ['finalize', null],
  ])
  expect(sent[0]?.body).toMatchObject({
    kind: 'sign',
    inboxUserId: 'user',
    adapterId: 'nimiq',
    expectedAddress: owner.address,
    requester: { origin: 'https://app.example' },
  })
})

const other = makeWallet()

test.each<[string, Parameters<typeof finalized>[0]]>([
  ['another wallet', { wallet: other }],
  ["another wallet that says it is the user's", { wallet: other, artifact: { address: owner.address } }],
  ['the wallet of another adapter with the same key', { artifact: { adapterId: 'ed25519' } }],
  ['another application', { text: (text) => text.replace('Example', 'Other') }],
  ['another origin', { text: (text) => text.replace('app.example', 'evil.example') }],
  ['another payload', { text: (text) => text.replace(/sha256:[^\n]*/, `sha256:${'_'.repeat(43)}`) }],
  ['no payload', { text: (text) => text.replace(/\nPayload Hash.*/, '') }],
  ['the payload’s hash without the payload', { text: (text) => text.replace(/\nPayload: .*/, '') }],
  ['another payload than its hash', { text: (text) => text.replace('/tmp', '/top') }],
  ['a sign-in', { text: (text) => text.replace('Kind: sign', 'Kind: login') }],
  ['another text than it shows', { artifact: { message: 'Example requests approval' } }],
  ['a forged signature', { artifact: { signatureHex: '00'.repeat(64) } }],
  ['no signature', { artifact: { signatureHex: '' } }],
  ['another order', { text: (text) => text.replace('Order ID: one', 'Order ID: two') }],
])('a proof of %s is no approval, whatever the service says', async (_, change) => {
  const { approval } = await askAt({ finalize: finalized(change) })
  await expect(approval.decision()).rejects.toMatchObject({ name: 'ApprovalError', reason: 'PROOF_INVALID' })
})

test('a proof of an approval of the same action is no approval of this one', async () => {
  const other = (payload: string): string => payload.replace(/"nonce":"[^"]*/, `"nonce":"${'_'.repeat(43)}`)
  const { approval } = await askAt({ finalize: (payload) => finalized()(other(payload)) })
  await expect(approval.decision()).rejects.toMatchObject({ reason: 'PROOF_INVALID' })
})

test.each<[string, (payload: string) => Response]>([
  ['nothing', () => Response.json({})],
  ['true', () => Response.json({ approved: true, proofArtifact: true })],
])('an answer of %s is no approval', async (_, finalize) => {
  const { approval } = await askAt({ finalize })
  await expect(approval.decision()).rejects.toMatchObject({ reason: 'PROOF_INVALID' })
})

test.each([['Example 2'], ['example'], [''], [['Example']], ['a\nb'.repeat(1000)]])(
  'a service with the name %j is APP_NAME_MISMATCH, and nobody is asked',
  async (appName) => {
    const fetch = vi.fn(async () => Response.json({ appName }))
    const refused = createApprovals({ ...options, fetch }).ask(request)
    await expect(refused).rejects.toMatchObject({ name: 'ApprovalError', reason: 'APP_NAME_MISMATCH' })
    await expect(refused).rejects.toThrow(/^[^\n]{1,200}$/)
    expect(fetch).toHaveBeenCalledTimes(1)
    expect(fetch).toHaveBeenCalledWith('http://localhost:1/api/auth/options', expect.anything())
  },
)

test.each<[string, () => Response]>([
  ['a page', () => new Response('<html>', { headers: { 'content-type': 'text/html' } })],
  ['a list', () => Response.json([])],
  ['no events', () => Response.json({ events: 'approved' })],
  ['an event without a sequence', () => Response.json({ events: [{ status: 'approved' }] })],
  ['an unknown status', () => step('granted')],
  ['an error without a code', () => Response.json({ error: 'no' }, { status: 404 })],
  ['a redirect', () => new Response(null, { status: 302, headers: { location: 'https://evil.example' } })],
])('%s in place of events is not an answer', async (_, events) => {
  const { approval } = await askAt({ events })
  await expect(approval.decision()).rejects.toMatchObject({ reason: 'UNEXPECTED_ANSWER' })
})

test.each([
  ['rejected', 'declined'],
  ['cancelled', 'declined'],
  ['expired', 'expired'],
])('an order that is %s is %s, as often as it is looked at', async (status, why) => {
  const { approval, sent } = await askAt({ events: () => step(status) })
  expect(await approval.decision()).toStrictEqual({ approved: false, why })
  expect(await approval.decision()).toStrictEqual({ approved: false, why })
  expect(sent.some(({ path }) => path === 'finalize')).toBe(false)
})

test.each([
  ['ORDER_REJECTED', 'declined'],
  ['ORDER_CANCELLED', 'declined'],
  ['ORDER_EXPIRED', 'expired'],
  ['ORDER_NOT_FOUND', 'expired'],
])('an order that is over with %s when it is finalized is %s', async (code, why) => {
  const { approval } = await askAt({ finalize: () => Response.json({ code, message: 'Over' }, { status: 409 }) })
  expect(await approval.decision()).toStrictEqual({ approved: false, why })
})

test('an answer that another process has had is ALREADY_USED', async () => {
  const finalize = () => Response.json({ code: 'ORDER_FINALIZED', message: 'Over' }, { status: 409 })
  const { approval } = await askAt({ finalize })
  await expect(approval.decision()).rejects.toMatchObject({ reason: 'ALREADY_USED' })
})

test.each([
  [400, 'WRONG_WALLET', 'SERVICE_REFUSED'],
  [401, 'ORDER_TOKEN_INVALID', 'SERVICE_REFUSED'],
  [503, 'STORE_UNAVAILABLE', 'SERVICE_UNAVAILABLE'],
])('HTTP %i with %s is %s', async (status, code, reason) => {
  const { approval } = await askAt({ finalize: () => Response.json({ code, message: 'a\nb' }, { status }) })
  const rejected = approval.decision()
  await expect(rejected).rejects.toMatchObject({ reason, code })
  await expect(rejected).rejects.toThrow(/^[^\n]*$/)
})

test('a service that is away rejects, and a later call gets the answer', async () => {
  let isAway = true
  const away = (): never => {
    throw new TypeError('fetch failed')
  }
  const { approval } = await askAt({
    finalize: (payload) => (isAway ? away() : finalized()(payload)),
  })
  await expect(approval.decision()).rejects.toMatchObject({ reason: 'SERVICE_UNAVAILABLE' })
  isAway = false
  expect(await approval.decision()).toMatchObject({ approved: true })
})

test('a lost answer of the finalize is asked for again with the same key, and given out once', async () => {
  let lost = true
  const { approval, sent } = await askAt({
    finalize: (payload) => {
      if (!lost) return finalized()(payload)
      lost = false
      return new Response(new ReadableStream({ start: (stream) => stream.error(new Error('reset')) }))
    },
  })
  await expect(approval.decision()).rejects.toMatchObject({ reason: 'SERVICE_UNAVAILABLE' })
  expect(await approval.decision()).toMatchObject({ approved: true })
  await expect(approval.decision()).rejects.toMatchObject({ reason: 'ALREADY_USED' })
  const keys = sent.filter(({ path }) => path === 'finalize').map(({ body }) => body.finalizeKey)
  expect(new Set(keys).size).toBe(1)
  expect(keys[0]).toMatch(/^[\w-]{43}$/)
})

test('of ten calls at once, one gets the approval', async () => {
  const { approval } = await askAt({})
  const decisions = await Promise.allSettled(Array.from({ length: 10 }, () => approval.decision()))
  expect(decisions.filter(({ status }) => status === 'fulfilled')).toHaveLength(1)
  for (const decision of decisions) {
    if (decision.status === 'rejected') expect(decision.reason).toMatchObject({ reason: 'ALREADY_USED' })
  }
})

describe('an approval of which the application remembers that it was given out', () => {
  test('is remembered once the proof holds, under its order, until a day after its end', async () => {
    const remembered: [string, number][] = []
    const remember = async (...call: [string, number]) => remembered.push(call) > 0
    const forged = await askAt({ finalize: finalized({ wallet: other }) }, { remember })
    await expect(forged.approval.decision()).rejects.toMatchObject({ reason: 'PROOF_INVALID' })
    expect(remembered).toEqual([])
    // Whatever the service says of the end of its order.
    const { approval } = await askAt({}, { remember })
    expect(await approval.decision()).toMatchObject({ approved: true })
    const end = Date.now() + 3_600_000 + 600_000 + dayMs
    expect(remembered).toEqual([['one', expect.closeTo(end, -5)]])
  })

  test.each<[string, unknown]>([
    ['false', false],
    ['nothing', undefined],
    ['1', 1],
    ['"true"', 'true'],
  ])('is ALREADY_USED if the answer is %s', async (_, answer) => {
    const remember = async () => answer as boolean
    const { approval } = await askAt({}, { remember })
    await expect(approval.decision()).rejects.toMatchObject({ reason: 'ALREADY_USED' })
  })

  test('is not given out if that cannot be written down', async () => {
    const remember = () => Promise.reject(new Error('disk full'))
    const { approval } = await askAt({}, { remember })
    await expect(approval.decision()).rejects.toThrow('disk full')
  })

  test('runs once, although a service answers three processes alike, and again after a restart', async () => {
    let payload = ''
    const service = createServer(async (message, response) => {
      const path = message.url ?? ''
      let body = ''
      for await (const chunk of message) body += chunk
      payload ||= path.endsWith('/start') ? JSON.parse(body).payload : ''
      const started = { orderId: 'one', desktopToken: 'token', approvalUrl: 'https://sign.example/', expiresAt: 1 }
      const approved = { events: [{ sequence: 4, status: 'approved' }] }
      const named = path.endsWith('/options') ? { appName: 'Example' } : undefined
      const answer = named ?? (path.endsWith('/start') ? started : path.includes('/events') ? approved : undefined)
      response.end(JSON.stringify(answer ?? { proofArtifact: artifactOf(payload, {}) }))
    })
    const url = await listening(service)
    const folder = temporaryFolder()
    const { handle } = await createApprovals({ ...options, url }).ask(request)
    const run = (more: object) => work({ ...options, url, ...more }, handle, join(folder, 'ran'))
    const atOnce = await Promise.all(Array.from({ length: 3 }, () => run({ memory: folder })))
    expect(atOnce.sort()).toEqual(['ALREADY_USED', 'ALREADY_USED', 'ran'])
    expect(await run({ memory: folder })).toBe('ALREADY_USED')
    expect((await readFile(join(folder, 'ran'), 'utf8')).split('\n')).toHaveLength(2)
    // Without a memory, once is the service's word.
    expect(await run({})).toBe('ran')
  })
})

test('a handle and an approval are refused once nothing has to remember them', async () => {
  const { approval, approvals } = await askAt({})
  vi.useFakeTimers({ now: Date.now() + 3_600_000 + 600_000 + dayMs + 1000, toFake: ['Date'] })
  await expect(approvals.resume(approval.handle)).rejects.toMatchObject({ reason: 'HANDLE_INVALID' })
  expect(await approval.decision()).toStrictEqual({ approved: false, why: 'expired' })
})

test.each<[string, Partial<Answers>]>([
  ['the events', { events: () => endless() }],
  ['the proof', { finalize: () => endless() }],
])('of an answer to %s, 64 KiB are read', async (_, answers) => {
  read = 0
  const { approval } = await askAt(answers)
  await expect(approval.decision()).rejects.toMatchObject({ reason: 'UNEXPECTED_ANSWER' })
  expect(read).toBeLessThan(200_000)
})

/** Bytes that were read of endless answers. */
let read = 0

/** An answer of white space without an end. */
function endless(): Response {
  const pull = (stream: ReadableStreamDefaultController) => {
    read += 16_384
    stream.enqueue(new Uint8Array(16_384).fill(0x20))
  }
  return new Response(new ReadableStream({ pull }), { headers: { 'content-type': 'application/json' } })
}

test('the handle has no key to finalize with, and a second process has another', async () => {
  const { approval, sent } = await askAt({})
  await approval.decision()
  const { finalizeKey } = sent.at(-1)!.body
  expect(Buffer.from(approval.handle, 'base64url').toString('latin1')).not.toContain(finalizeKey)
  const second = await askAt({})
  await second.approval.decision()
  expect(second.sent.at(-1)?.body.finalizeKey).not.toBe(finalizeKey)
})

test('an aborted wait rejects with the signal’s reason, gives nothing out, and can begin again', async () => {
  const controller = new AbortController()
  const never = (signal: AbortSignal) =>
    new Promise<Response>((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)))
  const { approval } = await askAt({ events: (poll, signal) => (poll === 1 ? never(signal) : step('approved')) })
  const waiting = approval.decision({ signal: controller.signal })
  controller.abort(new Error('enough'))
  await expect(waiting).rejects.toThrow('enough')
  expect(await approval.decision()).toMatchObject({ approved: true })
})

test('a call with a signal that is aborted sends nothing', async () => {
  const { approval, sent } = await askAt({})
  await expect(approval.decision({ signal: AbortSignal.abort(new Error('enough')) })).rejects.toThrow('enough')
  expect(sent.map(({ path }) => path)).toEqual(['start'])
})

test('an answer that comes after the abort is not given out, and a later call has it', async () => {
  const controller = new AbortController()
  const { approval } = await askAt({
    // A fetch that does not look at its signal.
    finalize: (payload) => {
      controller.abort(new Error('enough'))
      return finalized()(payload)
    },
  })
  await expect(approval.decision({ signal: controller.signal })).rejects.toThrow('enough')
  expect(await approval.decision()).toMatchObject({ approved: true })
})

test('a service that answers at once without news is asked once in a second', async () => {
  const { approval, polls } = await askAt({
    events: (poll) => (poll < 3 ? Response.json({ events: [] }) : step('rejected')),
  })
  vi.useFakeTimers()
  const decided = approval.decision()
  await vi.advanceTimersByTimeAsync(900)
  expect(polls()).toBe(1)
  await vi.advanceTimersByTimeAsync(200)
  expect(polls()).toBe(2)
  await vi.advanceTimersByTimeAsync(1000)
  expect(await decided).toStrictEqual({ approved: false, why: 'declined' })
})

test.each<[string, (poll: number) => Response]>([
  ['the same step', () => step('waiting_user', 3)],
  ['a later number of the same step', (poll) => step('waiting_user', poll)],
  ['two steps in turn', (poll) => step(poll % 2 === 0 ? 'claimed' : 'created', poll)],
])('a service that says %s again and again is asked once in a second', async (_, events) => {
  const { approval, polls } = await askAt({ events })
  vi.useFakeTimers()
  const controller = new AbortController()
  const decided = expect(approval.decision({ signal: controller.signal })).rejects.toThrow('enough')
  await vi.advanceTimersByTimeAsync(3000)
  expect(polls()).toBeLessThan(8)
  controller.abort(new Error('enough'))
  await decided
})

test('an abort is noticed although the function that fetches does not look at its signal', async () => {
  const controller = new AbortController()
  const { approval, polls } = await askAt({
    events: () => {
      controller.abort(new Error('enough'))
      return Response.json({ events: [] })
    },
  })
  vi.useFakeTimers()
  await expect(approval.decision({ signal: controller.signal })).rejects.toThrow('enough')
  expect(polls()).toBe(1)
})

test('each poll asks for what is newer than the last step', async () => {
  const asked: string[] = []
  const fetch = async (url: string): Promise<Response> => {
    if (url.includes('/start')) {
      const approvalUrl = 'https://sign.example/inbox'
      return Response.json({ orderId: 'one', desktopToken: 'token', approvalUrl, expiresAt: 1 })
    }
    if (url.endsWith('/options')) return Response.json({})
    asked.push(new URL(url).search)
    return step(asked.length === 1 ? 'created' : 'rejected', asked.length)
  }
  const approval = await createApprovals({ ...options, fetch }).ask(request)
  expect(await approval.decision()).toStrictEqual({ approved: false, why: 'declined' })
  expect(asked).toEqual(['?orderId=one&wait=25', '?orderId=one&wait=25&after=1'])
})

test.each([
  ['no order', {}],
  [
    'an id that is no key',
    { orderId: '../two', desktopToken: 't', expiresAt: 1, approvalUrl: 'https://sign.example/' },
  ],
  ['no address', { orderId: 'one', desktopToken: 'token', expiresAt: 1 }],
  ['an address of a script', { orderId: 'one', desktopToken: 'token', expiresAt: 1, approvalUrl: 'javascript:x' }],
])('a start that is answered with %s is refused', async (_, answer) => {
  const fetch = async (): Promise<Response> => Response.json(answer)
  await expect(createApprovals({ ...options, fetch }).ask(request)).rejects.toMatchObject({
    reason: 'UNEXPECTED_ANSWER',
  })
})

test('a redirect leads nowhere: the start key goes to no other address', async () => {
  const seen: (string | undefined)[] = []
  const other = createServer(({ headers }, response) => {
    seen.push(headers.authorization)
    response.end('{}')
  })
  const elsewhere = await listening(other)
  const at: string[] = []
  const service = createServer((message, response) => {
    at.push(message.url ?? '')
    if (message.method === 'GET') response.end('{}')
    else response.writeHead(307, { location: elsewhere }).end()
  })
  const url = await listening(service)
  await expect(createApprovals({ ...options, url }).ask(request)).rejects.toMatchObject({ reason: 'UNEXPECTED_ANSWER' })
  expect(at).toEqual(['/api/auth/options', '/api/auth/cross-device/start'])
  expect(seen).toEqual([])
})

test('a long poll without news is followed by the next at once, and Node warns of nothing', async () => {
  const slow = () => new Promise<Response>((resolve) => setTimeout(resolve, 1100, Response.json({ events: [] })))
  const { approval, polls } = await askAt({ events: (poll) => (poll === 1 ? slow() : step('rejected')) })
  // The file fails if Node warns: test/support/file-end.ts.
  expect(await approval.decision()).toStrictEqual({ approved: false, why: 'declined' })
  expect(polls()).toBe(2)
})
