import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createCountersignClient } from 'countersign/client'
import { clientWallet, makeTestWallet } from 'countersign/testing'
import { startService } from './service.ts'

test('a phone signs a desktop in', async (context) => {
  const { url, close } = await startService()
  context.after(close)
  const wallet = makeTestWallet()
  const desktop = createCountersignClient({ baseUrl: url })
  const phone = createCountersignClient({ baseUrl: url, wallet: clientWallet(wallet) })

  const order = await desktop.startOrder({ kind: 'login', displayTitle: 'Sign in to the tulip shop' })

  const claimed = await phone.claimOrder(order.claimUrl)
  const challenge = await phone.getOrderChallenge(claimed)
  assert.equal(challenge.displayTitle, 'Sign in to the tulip shop')
  assert.equal(challenge.confirmationCode, order.confirmationCode)
  await phone.approveOrder(claimed, { challenge })

  for await (const { status } of desktop.watchOrder(order)) if (status === 'approved') break
  const result = await desktop.finalizeOrder(order)
  assert(result.kind === 'login')
  assert.equal(result.session.address, wallet.address)
})

test('with return codes, the desktop needs the code that the phone shows', async (context) => {
  const { url, close } = await startService({ confirmationCode: 'return' })
  context.after(close)
  const desktop = createCountersignClient({ baseUrl: url })
  const phone = createCountersignClient({ baseUrl: url, wallet: clientWallet(makeTestWallet()) })

  const order = await desktop.startOrder({ kind: 'login' })
  const claimed = await phone.claimOrder(order.claimUrl)
  const { returnCode } = await phone.approveOrder(claimed, { challenge: await phone.getOrderChallenge(claimed) })

  await assert.rejects(desktop.finalizeOrder(order), { code: 'RETURN_CODE_REQUIRED' })
  const result = await desktop.finalizeOrder(order, { returnCode })
  assert.equal(result.status, 'finalized')
})
