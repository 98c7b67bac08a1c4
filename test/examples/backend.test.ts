import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { get, type IncomingMessage } from 'node:http'
import { json } from 'node:stream/consumers'
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

/** An answer of the backend. */
interface Answer {
  readonly status: number | undefined
  readonly json: unknown
}

/**
 * Asks the backend over a connection of its own. One that is kept is closed by the backend after five seconds, of which a
 * test that a busy machine holds up learns only by the failure of its next question.
 */
async function askOnce(backend: string, token: string | undefined): Promise<Answer> {
  const headers = token === undefined ? {} : { authorization: `Bearer ${token}` }
  const [response] = (await once(get(backend, { headers, agent: false }), 'response')) as [IncomingMessage]
  return { status: response.statusCode, json: await json(response) }
}

test('the backend serves whoever is signed in', async () => {
  const { url, service } = await startService()
  const backend = await startBackend(url)
  /** Asks again if the backend did not hear from the service in time, as it tells its clients to. */
  const ask = async (token?: string): Promise<Answer> => {
    for (;;) {
      const answer = await askOnce(backend, token)
      if (answer.status !== 503) return answer
    }
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
  expect((await askOnce(backend, token)).status).toBe(503)
})
