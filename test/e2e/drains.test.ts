import { readFile } from 'node:fs/promises'
import { setTimeout as sleep } from 'node:timers/promises'
import * as grpc from '@grpc/grpc-js'
import { expect, onTestFinished, test } from 'vitest'
import { proxyPorts, startDeployed } from '../support/deployed-proxies.ts'
import { hasPart } from '../support/optional.ts'
import { freePort } from '../support/redis-server.ts'
import { type ServiceProcess, spawnService } from '../support/service.ts'
import { trustedAuthority } from '../support/tls.ts'

const authority = hasPart('openssl') ? await trustedAuthority() : undefined

/** Drains of either instance, and how long each takes, in seconds. */
const rounds = 2
const drainSeconds = 2
/** Calls in flight at any time. */
const inFlight = 16

/** How gRPC calls reach two instances, and the most of them that may fail in four drains. */
const ways = [
  { name: 'grpc-js, two addresses, no proxy', tls: false, mostFailures: 0 },
  { name: 'grpc-js over TLS', tls: true, mostFailures: 0 },
  { name: 'haproxy', tls: false, mostFailures: 0 },
  { name: 'caddy', tls: false, mostFailures: 0 },
  // nginx repeats no call that it has begun to send on a connection that closes.
  { name: 'nginx', tls: false, mostFailures: 9 },
] as const

for (const { name, tls, mostFailures } of ways) {
  const isProxy = !name.startsWith('grpc-js')
  test.skipIf(authority === undefined || (isProxy && !hasPart(name)))(
    `${name}: at most ${mostFailures} gRPC calls fail while two instances are stopped in turn, four drains in all`,
    { timeout: 120_000 },
    async () => {
      const certificate = await authority!.issue('localhost')
      const upstreams = [await freePort(), await freePort()] as const
      const ports = isProxy ? await proxyPorts() : undefined
      const instance = (port: number): Promise<ServiceProcess> =>
        spawnService({
          PORT: String(port),
          COUNTERSIGN_STORE: 'sqlite::memory:',
          COUNTERSIGN_DRAIN_SECONDS: String(drainSeconds),
          ...(tls ? { COUNTERSIGN_TLS_CERT: certificate.cert, COUNTERSIGN_TLS_KEY: certificate.key } : {}),
          ...(ports === undefined
            ? { COUNTERSIGN_PUBLIC_URL: `${tls ? 'https' : 'http'}://localhost` }
            : { COUNTERSIGN_PUBLIC_URL: `https://localhost:${ports.port}`, COUNTERSIGN_TRUST_PROXY: '1' }),
        })
      const running = await Promise.all(upstreams.map(instance))
      if (ports !== undefined) await startDeployed(name, { ...ports, upstreams, certificate })
      const target =
        ports === undefined
          ? `ipv4:${upstreams.map((port) => `127.0.0.1:${port}`).join(',')}`
          : `localhost:${ports.port}`
      const trusted = grpc.credentials.createSsl(await readFile(authority!.cert))
      const client = new grpc.Client(target, tls || isProxy ? trusted : grpc.credentials.createInsecure(), {
        'grpc.ssl_target_name_override': 'localhost',
        'grpc.default_authority': ports === undefined ? 'localhost' : `localhost:${ports.port}`,
      })
      onTestFinished(() => client.close())

      const failures: string[] = []
      let calls = 0
      let isLoaded = true
      const same = (bytes: Buffer): Buffer => bytes
      const issueNonce = (): Promise<void> =>
        new Promise((resolve) => {
          client.makeUnaryRequest(
            '/countersign.v1.SignInService/IssueNonce',
            same,
            same,
            Buffer.alloc(0),
            { deadline: Date.now() + 10_000 },
            (error) => {
              calls++
              if (error !== null) failures.push(error.message)
              resolve()
            },
          )
        })
      const load = Array.from({ length: inFlight }, async () => {
        while (isLoaded) await issueNonce()
      })
      await sleep(500)
      for (let drain = 0; drain < rounds * upstreams.length; drain++) {
        const index = drain % upstreams.length
        expect(await running[index]!.stop()).toBe(0)
        running[index] = await instance(upstreams[index]!)
        // The time after which every proxy has seen that it is back.
        await sleep(1_500)
      }
      isLoaded = false
      await Promise.all(load)
      console.log(`${name}: ${failures.length} of ${calls} calls failed`, [...new Set(failures)])
      expect(failures.length).toBeLessThanOrEqual(mostFailures)
    },
  )
}
