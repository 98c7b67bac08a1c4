import http2 from 'node:http2'
import { createClient } from '@connectrpc/connect'
import { createGrpcTransport } from '@connectrpc/connect-node'
import { afterEach, describe, expect, onTestFinished, test, vi } from 'vitest'
import { SignInService } from '../../gen/server/countersign/v1/sign_in_service_pb.ts'
import type { CountersignOptions } from '../../src/service/config.ts'
import { keptLog } from '../support/log-lines.ts'
import { rest } from '../support/rest.ts'
import { startService } from '../support/service.ts'

afterEach(() => void vi.useRealTimers())

/** A service, and the warnings that it logs. */
async function start(options: CountersignOptions = {}) {
  const { logger, lines } = keptLog()
  const { url, service } = await startService({ logger, ...options })
  const warnings = () => lines.filter(({ level }) => level === 'warn')
  const get = async (headers: Record<string, string>) => void (await rest(url, '/session', undefined, headers))
  return { url, service, warnings, get }
}

/** Headers of a request that passed one proxy. */
const passedOne = { 'x-forwarded-for': '203.0.113.7', 'x-forwarded-proto': 'https', 'x-forwarded-host': 'auth.example' }

describe('without trustProxy', () => {
  test.each(['x-forwarded-for', 'x-forwarded-host', 'x-forwarded-proto', 'forwarded', 'x-real-ip'])(
    'the first request with %s makes one warning that says what to set, and shows no value',
    async (name) => {
      const { get, warnings } = await start()
      await get({})
      expect(warnings()).toEqual([])
      for (let i = 0; i < 50; i++) await get({ [name]: `for=made-up-${i}` })
      const [line, ...others] = warnings()
      expect(others).toEqual([])
      expect(line?.text).toContain(name)
      expect(line?.text).toContain('COUNTERSIGN_TRUST_PROXY')
      expect(JSON.stringify(line)).not.toContain('made-up')
      expect(line?.fields).toEqual({ ip: '127.0.0.1' })
    },
  )

  test('it comes over every protocol, and on every server that the service is mounted on', async () => {
    const grpc = await start()
    const client = createClient(SignInService, createGrpcTransport({ baseUrl: grpc.url }))
    await client.issueNonce({}, { headers: passedOne })
    expect(grpc.warnings()).toHaveLength(1)

    const refused = await start()
    const session = http2.connect(refused.url)
    onTestFinished(() => session.destroy())
    const stream = session.request({ ':path': '/nowhere', ...passedOne })
    await new Promise((resolve) => stream.on('response', resolve))
    expect(refused.warnings()).toHaveLength(1)

    const mounted = await start()
    await mounted.service.fetch(new Request(`${mounted.url}/api/auth/session`, { headers: passedOne }))
    expect(mounted.warnings().filter(({ text }) => text.includes('COUNTERSIGN_TRUST_PROXY'))).toHaveLength(1)
  })

  test('it comes again after an hour, not before', async () => {
    vi.useFakeTimers({ toFake: ['performance'] })
    const { get, warnings } = await start()
    await get(passedOne)
    vi.advanceTimersByTime(3_599_000)
    await get(passedOne)
    expect(warnings()).toHaveLength(1)
    vi.advanceTimersByTime(2_000)
    await get(passedOne)
    expect(warnings()).toHaveLength(2)
  })
})

describe('with trustProxy', () => {
  test('what proxies send as they should makes no warning, and neither do requests that go around them', async () => {
    const { get, warnings } = await start({ trustProxy: 1 })
    await get(passedOne)
    await get({ ...passedOne, 'x-forwarded-for': '198.51.100.1, 203.0.113.7' })
    await get({})
    expect(warnings()).toEqual([])
  })

  test.each(['', 'unknown', '_hidden'])('a proxy that writes %j in place of an address makes one', async (address) => {
    const { get, warnings } = await start({ trustProxy: true })
    await get({ ...passedOne, 'x-forwarded-for': address })
    await get({ 'x-forwarded-proto': 'https' })
    expect(warnings().map(({ text }) => text)).toEqual([expect.stringContaining('append')])
  })

  test('fewer addresses than proxies make one, because a client could have written the one that counts', async () => {
    const { get, warnings } = await start({ trustProxy: 2 })
    await get({ ...passedOne, 'x-forwarded-for': '198.51.100.1, 203.0.113.7' })
    expect(warnings()).toEqual([])
    await get(passedOne)
    await get(passedOne)
    expect(warnings().map(({ text }) => text)).toEqual([expect.stringContaining('(2)')])
  })
})
