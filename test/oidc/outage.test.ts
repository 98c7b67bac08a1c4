import { expect, test } from 'vitest'
import { keptLog } from '../support/log-lines.ts'
import { navigate } from '../support/navigate.ts'
import { RedisServer } from '../support/redis-server.ts'
import { redisUrl } from '../support/stores.ts'
import { deviceGrant, terminal } from './devices.ts'
import { asked, contentOf, redirectUri, shop, startIssuer } from './support.ts'

test.skipIf(redisUrl === undefined)(
  'while Redis hangs, calls of the issuer are answered with that, and do not fill the log',
  async () => {
    await using redis = await RedisServer.start()
    const { logger, lines } = keptLog()
    const { url } = await startIssuer([shop, terminal], {
      store: redis.url,
      secret: 'a secret for tests and for nothing else',
      logger,
      oidc: { device: true },
    })
    const { client_id, client_secret } = shop.metadata
    const code = {
      grant_type: 'authorization_code',
      code: 'x',
      redirect_uri: redirectUri,
      code_verifier: 'a'.repeat(43),
    }
    redis.freeze()
    const pages = Array.from({ length: 20 }, async () => {
      const headers = { accept: 'text/html' }
      const answer = await navigate(`${url}/api/auth/oidc/authorize?${new URLSearchParams(asked)}`, { headers })
      return [answer.status, contentOf(await answer.text()).reason]
    })
    const tokens = Array.from({ length: 20 }, async () => {
      const body = new URLSearchParams({ client_id, client_secret, ...code })
      const answer = await fetch(`${url}/api/auth/oidc/token`, { method: 'POST', body })
      return [answer.status, (await answer.json()).error]
    })
    const polls = Array.from({ length: 20 }, async () => {
      const body = new URLSearchParams({ client_id: 'tulip-cli', grant_type: deviceGrant, device_code: 'x' })
      const answer = await fetch(`${url}/api/auth/oidc/token`, { method: 'POST', body })
      return [answer.status, (await answer.json()).error]
    })
    expect(await Promise.all(pages)).toEqual(Array(20).fill([503, 'STORE_UNAVAILABLE']))
    expect(await Promise.all(tokens)).toEqual(Array(20).fill([503, 'temporarily_unavailable']))
    // The end of a device's sign-in would be any other answer.
    expect(await Promise.all(polls)).toEqual(Array(20).fill([400, 'slow_down']))
    redis.thaw()
    const told = lines.map(({ level, fields }) => [level, fields.reason])
    expect(told[0]).toEqual(['warn', 'STORE_UNAVAILABLE'])
    expect(told.length).toBeLessThan(5)
  },
)
