import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { expect, onTestFinished, test } from 'vitest'
import { createCountersignClient } from '../../src/client/index.ts'
import { pageWallet } from '../client/support.ts'
import { startService } from '../support/service.ts'
import { makeWallet } from '../support/wallet.ts'

const backendFile = fileURLToPath(new URL('../../examples/backend/main.ts', import.meta.url))

/** Runs the example, as its first lines say, and resolves with its address. */
async function startBackend(countersignUrl: string): Promise<string> {
  const environment = { PATH: process.env.PATH, COUNTERSIGN_URL: countersignUrl, PORT: '0' }
  const child = spawn(process.execPath, [backendFile], { env: environment, stdio: ['ignore', 'pipe', 'inherit'] })
  onTestFinished(async () => {
    const exited = once(child, 'exit')
    child.kill()
    await exited
  })
  const [line] = (await once(child.stdout, 'data')) as [Buffer]
  return line.toString().trim()
}

test('the backend serves whoever is signed in', async () => {
  const { url, service } = await startService()
  const backend = await startBackend(url)
  const ask = async (token?: string): Promise<{ status: number; json: unknown }> => {
    const response = await fetch(backend, token === undefined ? {} : { headers: { authorization: `Bearer ${token}` } })
    return { status: response.status, json: await response.json() }
  }
  const wallet = makeWallet()
  const client = createCountersignClient({ baseUrl: url, wallet: pageWallet(wallet) })
  const { token, session } = await client.signInWallet()

  expect(await ask(token)).toEqual({ status: 200, json: { userId: session.userId, address: wallet.address } })
  expect((await ask()).status).toBe(401)
  expect((await ask(`${token}x`)).status).toBe(401)
  await client.signOut()
  expect((await ask(token)).status).toBe(401)
  await service.close(0)
  expect((await ask(token)).status).toBe(503)
})
