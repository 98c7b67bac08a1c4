import { expect, onTestFinished, test } from 'vitest'
import { run } from '../support/command.ts'
import { navigate } from '../support/navigate.ts'
import { RedisServer } from '../support/redis-server.ts'
import { asked, Browser, shop, startIssuer } from './support.ts'

const [batches, atOnce] = [70, 200]

test('14,000 resumes of interactions fill no Redis of 100 MB, and others are answered', async () => {
  const redis = await RedisServer.start('--maxmemory', '100mb', '--maxmemory-policy', 'noeviction')
  onTestFinished(() => redis[Symbol.asyncDispose]())
  const { url } = await startIssuer([shop], {
    store: redis.url,
    secret: 's'.repeat(40),
    rateLimit: true,
    trustProxy: 1,
  })
  const from = (ip: string) => {
    const browser = new Browser(url)
    const own = browser.fetch.bind(browser)
    browser.fetch = (address, init) => own(address, { ...init, headers: { ...init?.headers, 'x-forwarded-for': ip } })
    return browser
  }
  const query = new URLSearchParams({ ...asked, state: 'x'.repeat(3_000) })
  const begin = async (browser: Browser) => {
    const answer = await browser.fetch(`/api/auth/oidc/authorize?${query}`)
    return { status: answer.status, path: answer.headers.get('location') ?? '' }
  }
  const attacker = from('203.0.113.7')
  let live = [(await begin(attacker)).path]
  let stored = 1
  for (let batch = 0; batch < batches; batch++) {
    const next = await Promise.all(
      Array.from({ length: atOnce }, async (_unused, index) => {
        const path = (live[index % live.length] ?? '').replace('/interaction/', '/authorize/')
        const answer = await attacker.fetch(path)
        return answer.status === 303 ? [answer.headers.get('location') ?? ''] : []
      }),
    )
    stored += next.flat().length
    live = next.flat().length === 0 ? live : next.flat()
  }
  // Each goes on once, so one begun request is one interaction at a time.
  expect(stored).toBeLessThanOrEqual(batches + 1)
  const { stdout } = await run('redis-cli', ['-p', String(redis.port), 'info', 'memory'])
  expect(Number(/used_memory:(\d+)/.exec(stdout)?.[1])).toBeLessThan(20 * 1024 * 1024)
  expect((await begin(from('198.51.100.1'))).status).toBe(303)
  for (const probe of ['/healthz', '/readyz']) expect((await navigate(url + probe)).status).toBe(200)
}, 300_000)
