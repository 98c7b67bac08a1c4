import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { createCountersignClient } from 'countersign/client'
import { clientWallet, makeTestWallet } from 'countersign/testing'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { createApplication } from './application.ts'
import { startService } from './service.ts'

let service: Awaited<ReturnType<typeof startService>>
let application: ReturnType<typeof createApplication>
let applicationUrl: string

beforeAll(async () => {
  service = await startService()
  application = createApplication(service.url).listen(0, 'localhost')
  await once(application, 'listening')
  applicationUrl = `http://localhost:${(application.address() as AddressInfo).port}`
})

afterAll(async () => {
  application.close()
  await service.close()
})

test('a signed-in user is greeted', async () => {
  const wallet = makeTestWallet()
  const client = createCountersignClient({ baseUrl: service.url, wallet: clientWallet(wallet) })
  const { token } = await client.signInWallet()

  const answer = await fetch(applicationUrl, { headers: { authorization: `Bearer ${token}` } })
  expect(await answer.text()).toBe(`Hello ${wallet.address}`)
})

test('everybody else is asked to sign in', async () => {
  expect((await fetch(applicationUrl)).status).toBe(401)
})
