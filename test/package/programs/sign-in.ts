// Runs in a project that has the package installed: signs in, asks a backend's verifier, and writes what
// a wallet approved to invoice.json, the proof of it to proof.json.
import assert from 'node:assert/strict'
import { writeFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { createClient } from '@connectrpc/connect'
import { createConnectTransport } from '@connectrpc/connect-node'
import { createCountersign, createLogger } from 'countersign'
import { createSessionVerifier } from 'countersign/backend'
import { createCountersignClient, type Wallet } from 'countersign/client'
import { SessionService } from 'countersign/gen/session_service_pb.js'
import { makeTestWallet } from 'countersign/testing'

const { adapterId, publicKeyHex, address, sign } = makeTestWallet()
const wallet: Wallet = { adapterId, sign: (message) => ({ publicKey: publicKeyHex, signature: sign(message) }) }
const service = await createCountersign({
  store: 'sqlite::memory:',
  port: 0,
  logger: createLogger({ write: () => {} }, 'error'),
})
const url = `http://localhost:${await service.listen()}`
try {
  const client = createCountersignClient({ baseUrl: url, wallet })
  const { token, session } = await client.signInWallet()
  assert.equal(session.address, address)

  const verified = await createSessionVerifier({ url }).verify(token)
  assert.equal(verified?.userId, session.userId)
  const sessions = createClient(SessionService, createConnectTransport({ baseUrl: url, httpVersion: '2' }))
  const { session: current } = await sessions.getCurrentSession({}, { headers: { authorization: `Bearer ${token}` } })
  assert.equal(current?.id, session.id)

  const payload = '{"invoice":1}'
  const order = await client.startOrder({ kind: 'sign', displayTitle: 'Approve the invoice', payload })
  const claim = await client.claimOrder(order.claimUrl)
  await client.approveOrder(claim, { challenge: await client.getOrderChallenge(claim) })
  const finalized = await client.finalizeOrder(order)
  assert(finalized.kind === 'sign')
  await writeFile('invoice.json', payload)
  await writeFile('proof.json', JSON.stringify(finalized.proofArtifact))
  assert.match(await (await fetch(order.claimUrl)).text(), /<script type="module" src="\/pages\/approve-\w+\.js">/)
  // CommonJS loads it as well.
  assert.equal(createRequire(import.meta.url)('countersign').createCountersign, createCountersign)
  console.log(`origin ${url}`)
} finally {
  await service.close(0)
}
