import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { writeFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { build } from 'esbuild'
import { beforeAll, expect, onTestFinished, test } from 'vitest'
import { signIn } from '../../integrations/backend/support.ts'
import { run } from '../../support/command.ts'
import { listen } from '../../support/listening.ts'
import { freePort } from '../../support/redis-server.ts'
import { startService } from '../../support/service.ts'
import { folderOfFile } from '../../support/temporary-folder.ts'

/** A folder with workerd, which npm installs without running its script: its program is a package of its own. */
let folder = ''
beforeAll(async () => {
  folder = folderOfFile()
  await writeFile(join(folder, 'package.json'), '{"private": true}')
  const flags = ['--ignore-scripts', '--no-audit', '--no-fund', '--no-save']
  await run('npm', ['install', ...flags, 'workerd@1.20261117.1'], { cwd: folder })
}, 120_000)

const worker = `
  import { createConnectTransport } from '@connectrpc/connect-web'
  import * as connect from './browser/client/connect.ts'
  import { createCountersignClient } from './browser/client/index.ts'
  import { createSessionVerifier } from './integrations/backend/index.ts'
  const told = (work) => work.then((value) => value, (error) => \`\${error.code ?? error.reason} \${error.cause ?? ''}\`)
  export default {
    async fetch(request) {
      const { service, token, cookie } = await request.json()
      const from = (input, init) => fetch(input, { ...init, headers: { ...Object.fromEntries(new Headers(init.headers)), origin: service } })
      const options = { baseUrl: service, fetch: from }
      const transport = createConnectTransport({ baseUrl: service, fetch: (input, init) => from(input, { ...init, redirect: 'manual' }) })
      const overConnect = connect.createCountersignClient({ baseUrl: service, transport })
      const verifier = createSessionVerifier({ url: service, publicUrl: service })
      const read = new Request(service, { headers: { cookie } })
      return Response.json({
        connect: (await told(overConnect.issueNonce())).nonceId ?? await told(overConnect.issueNonce()),
        rest: (await told(createCountersignClient(options).issueNonce())).nonceId ?? await told(createCountersignClient(options).issueNonce()),
        token: (await told(verifier.verify(token)))?.address ?? await told(verifier.verify(token)),
        cookie: (await told(verifier.verify(read)))?.address ?? null,
      })
    },
  }`

/** Runs the worker, as of a date that decides what it has. Resolves with a function that asks it. */
async function startWorker(compatibilityDate: string): Promise<(body: object) => Promise<Record<string, unknown>>> {
  const { outputFiles } = await build({
    stdin: { contents: worker, resolveDir: fileURLToPath(new URL('../../../src/', import.meta.url)) },
    bundle: true,
    format: 'esm',
    platform: 'browser',
    write: false,
    logLevel: 'warning',
  })
  const port = await freePort()
  await writeFile(join(folder, 'worker.js'), outputFiles[0]!.text)
  await writeFile(
    join(folder, 'config.capnp'),
    `using Workerd = import "/workerd/workerd.capnp";
    const config :Workerd.Config = (
      services = [(name = "main", worker = .main), (name = "internet", network = (allow = ["private", "local"]))],
      sockets = [(name = "http", address = "127.0.0.1:${port}", http = (), service = "main")]);
    const main :Workerd.Worker = (
      modules = [(name = "worker.js", esModule = embed "worker.js")], compatibilityDate = "${compatibilityDate}");`,
  )
  const program = join(
    folder,
    `node_modules/@cloudflare/workerd-${process.platform}-${process.arch === 'arm64' ? 'arm64' : '64'}/bin/workerd`,
  )
  const child = spawn(program, ['serve', 'config.capnp'], { cwd: folder, stdio: 'inherit' })
  onTestFinished(async () => {
    child.kill()
    await once(child, 'exit')
  })
  const ask = async (body: object) => {
    const answer = await fetch(`http://127.0.0.1:${port}/`, { method: 'POST', body: JSON.stringify(body) })
    return (await answer.json()) as Record<string, unknown>
  }
  await expect
    .poll(
      () =>
        fetch(`http://127.0.0.1:${port}/`, { method: 'OPTIONS' }).then(
          () => true,
          () => false,
        ),
      { timeout: 20_000 },
    )
    .toBe(true)
  return ask
}

test.each(['2023-01-01', '2025-01-01'])(
  'the client calls the service from workerd with compatibility date %s, and the verifier finds sessions there',
  async (date) => {
    const { url } = await startService()
    const { token, cookie, session } = await signIn(url)
    const ask = await startWorker(date)
    const nonce = expect.stringMatching(/^[\w-]{38}$/)
    expect(await ask({ service: url, token, cookie })).toEqual({
      connect: nonce,
      rest: nonce,
      token: session.address,
      cookie: session.address,
    })
    // workerd reads headers as UTF-8.
    expect(await ask({ service: url, token, cookie: `\u00a0${cookie}` })).toMatchObject({ cookie: null })

    const elsewhere: string[] = []
    const redirecting = createServer((request, response) => {
      elsewhere.push(String(request.url))
      response.writeHead(307, { location: `${url}${request.url}` }).end()
    })
    const service = `http://127.0.0.1:${await listen(redirecting)}`
    const refused = await ask({ service, token, cookie })
    expect(refused).toMatchObject({
      connect: expect.stringMatching(/^UNEXPECTED_ANSWER /),
      rest: expect.stringMatching(/^UNEXPECTED_ANSWER /),
    })
    expect(refused.token).toMatch(/^UNEXPECTED_ANSWER/)
    expect(elsewhere).not.toEqual([])
  },
  60_000,
)
