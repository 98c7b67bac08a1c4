import tls, { type TLSSocket } from 'node:tls'
import { createClient } from '@connectrpc/connect'
import { createConnectTransport } from '@connectrpc/connect-node'
import { describe, expect, test } from 'vitest'
import { SessionService } from '../../gen/server/countersign/v1/session_service_pb.ts'
import { silentLogger } from '../../src/base/log.ts'
import { createCountersign } from '../../src/index.ts'
import { signInClients } from '../support/clients.ts'
import { run } from '../support/command.ts'
import { completeOrder, signInWith } from '../support/flows.ts'
import { hasPart } from '../support/optional.ts'
import { orderClients } from '../support/orders.ts'
import { rest } from '../support/rest.ts'
import { spawnService, startService } from '../support/service.ts'
import { replaceFile, trustedAuthority } from '../support/tls.ts'
import { makeWallet, proofOf } from '../support/wallet.ts'

const withOpenssl = hasPart('openssl')
const authority = withOpenssl ? await trustedAuthority() : undefined

/** Settings of a port with TLS, whose files belong to the test alone. */
async function tlsOptions() {
  const { cert, key } = await authority!.issue('localhost')
  return { tls: { cert, key }, enforceOrigin: false }
}

/** The certificate's serial number that a new connection sees. */
function serialAt(url: string): Promise<string> {
  const { port } = new URL(url)
  return new Promise((resolve, reject) => {
    const socket: TLSSocket = tls.connect({ port: Number(port), host: '127.0.0.1', servername: 'localhost' }, () => {
      resolve(socket.getPeerCertificate().serialNumber)
      socket.destroy()
    })
    socket.on('error', reject)
  })
}

/**
 * Checks the session over and over, over kept and new connections of HTTP/1.1 and over HTTP/2, until it is told to end.
 */
function checkSessions(url: string, token: string) {
  let isOver = false
  const results = { good: 0, failures: [] as string[] }
  const authorization = `Bearer ${token}`
  const check = async (ask: () => Promise<unknown>): Promise<void> => {
    while (!isOver) {
      try {
        await ask()
        results.good++
      } catch (error) {
        results.failures.push(String(error))
      }
    }
  }
  const overRest = async (headers: Record<string, string>): Promise<void> => {
    const { status } = await rest(url, '/session', undefined, { authorization, ...headers })
    if (status !== 200) throw new Error(`${status}`)
  }
  const session = createClient(SessionService, createConnectTransport({ baseUrl: url, httpVersion: '2' }))
  const loops = [
    check(() => overRest({})),
    check(() => overRest({ connection: 'close' })),
    check(() => session.getCurrentSession({}, { headers: { authorization } })),
  ]
  return {
    good: () => results.good,
    async end() {
      isOver = true
      await Promise.all(loops)
      expect(results.failures).toEqual([])
    },
  }
}

describe.skipIf(!withOpenssl)('on a port with TLS', () => {
  test('one signs in over HTTP/1.1 and over HTTP/2, and an order goes from start to end', async () => {
    const { url } = await startService(await tlsOptions())
    const { cookie } = await signInWith(signInClients.REST!(url))
    expect(cookie).toMatch(/^__Host-countersign[^;]*=[^;]+;.*; Secure/)
    await signInWith(signInClients['gRPC through @grpc/grpc-js']!(url))
    await completeOrder(orderClients.gRPC!(url))
  })

  test.skipIf(!hasPart('curl'))('curl signs in, over HTTP/2 and over HTTP/1.1', async () => {
    const { url } = await startService({ ...(await tlsOptions()), enforceOrigin: true })
    const curl = async (version: string, path: string, body: object) => {
      const args = ['-sS', '--cacert', authority!.cert, `--http${version}`, '-w', '\n%{http_version}', '--json', '@-']
      const running = run('curl', [...args, `${url}/api/auth/wallet${path}`])
      running.child.stdin?.end(JSON.stringify(body))
      const [json = '', spoken] = (await running).stdout.split('\n')
      expect(spoken).toBe(version)
      return JSON.parse(json)
    }
    for (const version of ['2', '1.1']) {
      const challenge = await curl(version, '/nonce', {})
      expect(challenge.origin).toBe(url)
      expect(await curl(version, '/verify', proofOf(makeWallet(), challenge))).toMatchObject({ ok: true })
    }
  })

  test('publicUrl is https by default, and its loopback names are trusted, those of http not', async () => {
    const { url, service } = await startService({ ...(await tlsOptions()), enforceOrigin: true })
    expect(service.publicUrl).toBe(url)
    const { port } = new URL(url)
    const issue = async (origin: string) => (await rest(url, '/wallet/nonce', {}, { origin })).status
    expect(await issue(`https://127.0.0.1:${port}`)).toBe(200)
    expect([await issue(`http://localhost:${port}`), await issue(`http://127.0.0.1:${port}`)]).toEqual([403, 403])
  })

  test('one of the two files alone stops the start', async () => {
    const { cert, key } = (await tlsOptions()).tls
    const message = 'tls.cert (COUNTERSIGN_TLS_CERT) and tls.key (COUNTERSIGN_TLS_KEY) must be set together'
    const options = { store: 'sqlite::memory:', logger: silentLogger }
    await expect(createCountersign({ ...options, tls: { cert } })).rejects.toThrow(new TypeError(message))
    await expect(createCountersign({ ...options, tls: { key } })).rejects.toThrow(new TypeError(message))
  })

  test('a certificate is replaced under load, on SIGHUP and by itself, and no call fails', async () => {
    const { cert, key } = (await tlsOptions()).tls
    const others = await Promise.all([authority!.issue('localhost'), authority!.issue('localhost')])
    const service = await spawnService({
      COUNTERSIGN_STORE: 'sqlite::memory:',
      COUNTERSIGN_TLS_CERT: cert,
      COUNTERSIGN_TLS_KEY: key,
    })
    const { url } = service
    const { token } = await signInWith(signInClients.REST!(url))
    const load = checkSessions(url, token)
    const serials = [await serialAt(url)]
    const reloads = () => service.log().match(/"text":"(reloaded|reloading failed)/g)?.length ?? 0

    // A pair that does not fit changes nothing.
    await replaceFile(cert, others[0]!.cert)
    service.process.kill('SIGHUP')
    await expect.poll(reloads).toBe(1)
    expect(service.log()).toMatch(/"level":"error","text":"reloading failed: everything stays as it was".*tls\.key/)
    expect(await serialAt(url)).toBe(serials[0])

    await replaceFile(key, others[0]!.key)
    service.process.kill('SIGHUP')
    await expect.poll(reloads).toBe(2)
    expect(service.log()).toContain('"text":"reloaded","changed":"tls"')
    serials.push(await serialAt(url))

    await replaceFile(cert, others[1]!.cert)
    await replaceFile(key, others[1]!.key)
    await expect.poll(() => serialAt(url), { timeout: 30_000 }).not.toBe(serials[1])
    serials.push(await serialAt(url))

    const before = load.good()
    await expect.poll(load.good).toBeGreaterThan(before + 10)
    await load.end()
    expect(new Set(serials).size).toBe(3)
    expect(await service.stop()).toBe(0)
  })
})
