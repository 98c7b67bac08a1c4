import { setTimeout as pause } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { createSessionVerifier, SessionCheckError } from '../../../src/integrations/backend/index.ts'
import { hasPart } from '../../support/optional.ts'
import { RedisServer } from '../../support/redis-server.ts'
import { spawnService } from '../../support/service.ts'
import { signIn } from './support.ts'

/** Length of the run, in seconds; 300 every night. */
const seconds = Number(process.env.SESSION_CHECK_SECONDS ?? 20)
const checksPerSecond = 2000
const users = 200
/** Every tenth user has signed out before the run begins. */
const hasSignedOut = (user: number): boolean => user % 10 === 0

/** What checks came to. */
class Tally {
  /** Live sessions that were taken for none. */
  falseRefusals = 0
  /** Sessions that had ended and were taken for live. */
  falseAdmissions = 0
  right = 0
  /** Checks that rejected with an outage, by the second in which they began. */
  readonly outages = new Map<number, number>()

  async count(check: Promise<unknown>, live: boolean, second: number): Promise<void> {
    try {
      const session = await check
      if ((session !== undefined) === live) this.right++
      else if (live) this.falseRefusals++
      else this.falseAdmissions++
    } catch (error) {
      if (!(error instanceof SessionCheckError) || error.reason !== 'SERVICE_UNAVAILABLE') throw error
      this.outages.set(second, (this.outages.get(second) ?? 0) + 1)
    }
  }

  outagesBetween(from: number, to: number): number {
    return [...this.outages].reduce((sum, [second, count]) => (second >= from && second < to ? sum + count : sum), 0)
  }
}

test.skipIf(!hasPart('redis-server'))(
  `2,000 checks a second for ${seconds} s, in which Redis is restarted twice: no live session is refused`,
  { timeout: (seconds + 120) * 1000 },
  async () => {
    // With a log of its own on disk, so that it has the same sessions after a restart.
    await using redis = await RedisServer.start('--appendonly', 'yes', '--appendfsync', 'always')
    const { url } = await spawnService({
      COUNTERSIGN_STORE: redis.url,
      COUNTERSIGN_SECRET: 'a secret for tests and for nothing else',
    })
    const tokens: string[] = []
    for (let user = 0; user < users; user++) {
      const { token, signOut } = await signIn(url)
      if (hasSignedOut(user)) await signOut()
      tokens.push(token)
    }
    const verifiers = [createSessionVerifier({ url, cacheSeconds: 0 }), createSessionVerifier({ url })]
    const tally = new Tally()
    const checks = new Set<Promise<void>>()
    const startedAt = performance.now()
    const elapsed = (): number => (performance.now() - startedAt) / 1000

    const restarts = (async () => {
      for (const part of [1 / 4, 1 / 2]) {
        await pause(Math.max(0, (seconds * part - elapsed()) * 1000))
        await redis.kill()
        await pause(1000)
        await redis.start()
      }
    })()
    let sent = 0
    while (elapsed() < seconds) {
      for (; sent < elapsed() * checksPerSecond; sent++) {
        const user = Math.floor(Math.random() * users)
        const verifier = verifiers[sent % verifiers.length]!
        const check = tally.count(verifier.verify(tokens[user]!), !hasSignedOut(user), Math.floor(elapsed()))
        checks.add(check)
        check.finally(() => checks.delete(check)).catch(() => {})
      }
      await pause(5)
    }
    await Promise.all([restarts, ...checks])

    const { right, falseRefusals, falseAdmissions, outages } = tally
    const away = tally.outagesBetween(0, seconds)
    console.log(`${sent} checks: ${right} right, ${away} outages, ${falseRefusals} false refusals`)
    expect({ falseRefusals, falseAdmissions }).toEqual({ falseRefusals: 0, falseAdmissions: 0 })
    expect(right + away).toBe(sent)
    expect(sent).toBeGreaterThanOrEqual(seconds * checksPerSecond * 0.95)
    // Both restarts were felt, and at the end everything is as it was.
    expect(tally.outagesBetween(0, seconds / 2)).toBeGreaterThan(0)
    expect(tally.outagesBetween(seconds / 2, seconds)).toBeGreaterThan(0)
    expect(tally.outagesBetween(seconds * 0.85, seconds), [...outages].join(' ')).toBe(0)
  },
)
