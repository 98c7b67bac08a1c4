import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { credentials, loadPackageDefinition } from '@grpc/grpc-js'
import { loadSync } from '@grpc/proto-loader'
import { makeWallets } from '../bench/wallets.ts'
import { Inspector, type Script } from '../test/support/inspector.ts'
import { RedisServer } from '../test/support/redis-server.ts'

const src = new URL('../src/', import.meta.url)
const proto = fileURLToPath(new URL('../proto', import.meta.url))
const warmUps = 20
const rounds = 8
const windowMs = 100

/**
 * Files of src with a function that runs for each VerifySignIn by gRPC on an open connection, on Redis and with limits
 * on. A function that also runs without a call in a window of the same length is not on its way.
 */
export async function filesOnTheWay(): Promise<readonly string[]> {
  await using redis = await RedisServer.start()
  const server = spawn(process.execPath, ['--inspect=127.0.0.1:0', fileURLToPath(new URL('main.ts', src))], {
    env: {
      PATH: process.env.PATH,
      HOST: '127.0.0.1',
      PORT: '0',
      COUNTERSIGN_STORE: redis.url,
      COUNTERSIGN_SECRET: 'x'.repeat(32),
    },
    stdio: ['ignore', 'ignore', 'pipe'],
  })
  const exited = once(server, 'exit')
  try {
    let log = ''
    let port: string | undefined
    for await (const line of createInterface(server.stderr)) {
      log += `${line}\n`
      port = /"text":"ready".*"port":(\d+)/.exec(line)?.[1]
      if (port !== undefined) break
    }
    if (port === undefined) throw new Error(`the service did not start: ${log}`)
    const inspector = await Inspector.connect(log)
    await inspector.startCounting()
    const definition = loadSync('countersign/v1/sign_in_service.proto', { includeDirs: [proto] })
    // biome-ignore lint/suspicious/noExplicitAny: grpc-js makes clients without types.
    const { SignInService } = (loadPackageDefinition(definition) as any).countersign.v1
    const client = new SignInService(`127.0.0.1:${port}`, credentials.createInsecure())
    const call = (name: string, request: object) => promisify(client[name].bind(client))(request)
    const [wallet] = makeWallets(1)
    const prove = async () => {
      const { nonceId, message } = await call('issueNonce', {})
      return { nonceId, ...wallet?.prove(message) }
    }
    for (let made = 0; made < warmUps; made++) await call('verifySignIn', await prove())
    const idle = new Set<string>()
    let way: Set<string> | undefined
    for (let round = 0; round < rounds; round++) {
      const proof = await prove()
      await sleep(windowMs)
      await inspector.takeCounts()
      await call('verifySignIn', proof)
      await sleep(windowMs)
      const ran = functionsOf(await inspector.takeCounts())
      way = way === undefined ? ran : new Set([...way].filter((name) => ran.has(name)))
      await sleep(windowMs)
      for (const name of functionsOf(await inspector.takeCounts())) idle.add(name)
    }
    client.close()
    inspector.close()
    const files = [...(way ?? [])].filter((name) => !idle.has(name)).map((name) => name.split(' ')[0] as string)
    return [...new Set(files)].sort()
  } finally {
    server.kill('SIGKILL')
    await exited
  }
}

/** Functions of src that ran, each as its file and its place there. */
function functionsOf(scripts: readonly Script[]): Set<string> {
  return new Set(
    scripts
      .filter(({ url }) => url.startsWith(src.href))
      .flatMap(({ url, functions }) =>
        functions
          .filter(({ ranges }) => (ranges[0]?.count ?? 0) > 0)
          .map(({ ranges }) => `src/${url.slice(src.href.length)} ${ranges[0]?.startOffset}`),
      ),
  )
}
