import { spawn } from 'node:child_process'
import { connect } from 'node:http2'
import { buffer } from 'node:stream/consumers'
import { pathToFileURL } from 'node:url'
import { expect, onTestFinished, test, vi } from 'vitest'
import { signInClients } from '../support/clients.ts'
import { killAtEnd } from '../support/command.ts'
import { copyExample } from '../support/example-programs.ts'
import { completeOrder, signInWith } from '../support/flows.ts'
import { orderClients } from '../support/orders.ts'
import { freePort } from '../support/redis-server.ts'

/** Runs an example on a free port. Resolves with its address once it answers `ask`. */
async function run(name: string, ask: (url: string) => Promise<string>): Promise<string> {
  const { folder, file } = await copyExample(`examples/mounting/${name}.ts`)
  const port = await freePort()
  const env = { PATH: process.env.PATH, PORT: String(port) }
  const child = spawn(process.execPath, [file], { cwd: folder, env, stdio: ['ignore', 'ignore', 'inherit'] })
  killAtEnd(child)
  const url = `http://localhost:${port}`
  await expect.poll(() => ask(url).catch(() => ''), { timeout: 50_000 }).toBe('The application')
  return url
}

const overHttp1 = async (url: string): Promise<string> => await (await fetch(url)).text()

async function overHttp2(url: string): Promise<string> {
  const session = connect(url)
  session.on('error', () => {})
  try {
    return (await buffer(session.request({ ':path': '/' }))).toString()
  } finally {
    session.destroy()
  }
}

/** The application's own route for a body gets it, too. */
async function expectEcho(ask: typeof fetch, url: string): Promise<void> {
  const headers = { 'content-type': 'application/json' }
  const echo = await ask(`${url}/echo`, { method: 'POST', headers, body: '{"a":1}' })
  expect(await echo.json()).toEqual({ a: 1 })
}

test.each(['express', 'fastify', 'hono-node', 'node-http'])(
  'examples/mounting/%s.ts: the application is there, and a sign-in and an order go through it',
  async (name) => {
    const url = await run(name, overHttp1)
    await expectEcho(fetch, url)
    for (const client of ['REST', 'Connect binary over HTTP/1.1']) await signInWith(signInClients[client]!(url))
    for (const client of ['REST', 'Connect over HTTP/1.1']) await completeOrder(orderClients[client]!(url))
    expect((await fetch(`${url}/c/0123456789abcdefABCDEF`)).status).toBe(200)
    expect((await fetch(`${url}/nothing`)).status).toBe(404)
  },
)

test('examples/mounting/node-http2.ts: the same over HTTP/2, gRPC included', async () => {
  const url = await run('node-http2', overHttp2)
  await signInWith(signInClients['gRPC through @grpc/grpc-js']!(url))
  for (const client of ['gRPC', 'Connect over HTTP/2']) await completeOrder(orderClients[client]!(url))
})

test('examples/mounting/hono-fetch.ts: the same without a server', async () => {
  const { file } = await copyExample('examples/mounting/hono-fetch.ts')
  const app = (await import(/* @vite-ignore */ pathToFileURL(file).href)).default
  const url = 'http://localhost:3000'
  const ask: typeof fetch = async (input, init) => await app.fetch(new Request(input, init))
  vi.stubGlobal('fetch', ask)
  onTestFinished(() => void vi.unstubAllGlobals())
  expect(await overHttp1(url)).toBe('The application')
  await expectEcho(ask, url)
  await signInWith(signInClients.REST!(url))
  for (const client of ['REST', 'gRPC-Web']) await completeOrder(orderClients[client]!(url))
})
