// The two devices of an order, each with a client that was generated from /openapi.json: see docs/other-languages.md.
import { generateKeyPairSync, sign } from 'node:crypto'
import createClient from 'openapi-fetch'
import type { components, paths } from './countersign.ts'

type Schemas = components['schemas']

const client = createClient<paths>({ baseUrl: process.argv[2] ?? 'http://localhost:8080' })

/** A wallet that signs the text as it is, with Ed25519. */
const { publicKey, privateKey } = generateKeyPairSync('ed25519')
const publicKeyHex = Buffer.from(publicKey.export({ format: 'jwk' }).x ?? '', 'base64url').toString('hex')

/** The phone: claims the order of a claim URL, reads what to sign, and approves. */
async function approve(orderId: string, claimToken: string): Promise<string> {
  const claimed = await client.POST('/api/auth/cross-device/claim', { body: { orderId, claimToken } })
  const { challengeToken } = required(claimed)
  const challenge = await client.GET('/api/auth/cross-device/challenge', {
    params: { query: { orderId } },
    headers: { authorization: `Bearer ${challengeToken}` },
  })
  const { message, displayTitle = 'a request' } = required(challenge)
  const signatureHex = sign(null, Buffer.from(message), privateKey).toString('hex')
  const proof = { publicKeyHex, signatureHex, adapterId: 'ed25519' }
  const approved = await client.POST('/api/auth/cross-device/approve', { body: { orderId, challengeToken, proof } })
  return `${displayTitle}: ${required(approved).status}`
}

/** The computer: starts an order, waits for the phone, and fetches the result. */
async function run(order: Schemas['StartOrderRequest']): Promise<Schemas['FinalizeOrderResponse']> {
  const started = await client.POST('/api/auth/cross-device/start', { body: order })
  const { orderId, claimToken, desktopToken } = required(started)
  const phone = approve(orderId, claimToken)
  for (let after: number | undefined; ; ) {
    const polled = await client.GET('/api/auth/cross-device/events', {
      params: { query: { orderId, ...(after === undefined ? {} : { after }) } },
      headers: { authorization: `Bearer ${desktopToken}`, accept: 'application/json' },
    })
    const answer = required(polled)
    const events = typeof answer === 'string' ? [] : answer.events
    after = events.at(-1)?.sequence ?? after
    if (events.some(({ status }) => status === 'approved')) break
  }
  console.log(await phone)
  return required(await client.POST('/api/auth/cross-device/finalize', { body: { orderId, desktopToken } }))
}

/** The data of an answer; throws what the service said if it refused. */
function required<T>({ data, error }: { data?: T; error?: Schemas['Error'] }): NonNullable<T> {
  if (data === undefined || data === null) throw new Error(`${error?.code}: ${error?.message}`)
  return data
}

const login = await run({ kind: 'login', displayTitle: 'Sign in' })
console.log(`signed in as ${login.session?.address}, go to ${login.redirectTo}`)

const payload = JSON.stringify({ order: 7, total: '12.50' })
const signed = await run({ kind: 'sign', displayTitle: 'Order 7', payload })
console.log(`signed: ${signed.proofArtifact?.payload}`)
