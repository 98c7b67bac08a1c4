import { setTimeout as sleep } from 'node:timers/promises'
import { expect, test } from 'vitest'
import type { Counts } from '../../src/commands/admin/copy.ts'
import { runMain } from '../support/command.ts'
import { bearer, rest } from '../support/rest.ts'
import { makeWallet } from '../support/wallet.ts'
import { signIn } from './calls.ts'
import { openBare, rehearse } from './copying.ts'

/**
 * Copies by the command, while users go on signing in: none of them is lost, and none gets in once values are copied.
 */
async function copyUnderUse(url: string, from: string, to: string, secretFile: string): Promise<Counts> {
  const tokens: string[] = []
  let refusals = 0
  const ending = new AbortController()
  const signingIn = (async () => {
    while (!ending.signal.aborted) {
      await signIn(url, makeWallet()).then(
        ({ token }) => tokens.push(token),
        () => refusals++,
      )
      await sleep(100)
    }
  })()
  const args = ['admin', 'copy', '--from', from, '--to', to, '--secret-file', secretFile, '--json']
  const { code, stdout, stderr } = await runMain(args, { env: { COUNTERSIGN_WEBHOOK_URL: 'https://hooks.example/' } })
  ending.abort()
  await signingIn
  expect([code, stderr]).toEqual([0, expect.stringMatching(/both stores are marked; .* 60 seconds\n.*copying/)])
  expect(Math.min(tokens.length, refusals)).toBeGreaterThan(10)
  const { copied }: { readonly copied: Counts } = JSON.parse(stdout)
  for (const [kind, counts] of Object.entries(copied)) {
    if (kind !== 'limit') expect([kind, counts.to]).toEqual([kind, counts.from])
  }
  const store = await openBare(to)
  let sessions = 0
  for await (const { value } of store.scan('session:')) if (value.includes('userId')) sessions++
  expect(sessions).toBeGreaterThanOrEqual(10_000 + tokens.length)
  expect((await rest(url, '/session', undefined, bearer(tokens.at(-1) ?? ''))).status).toBe(503)
  // The services of the new store deliver what the operator did.
  const events: string[] = []
  for await (const { key, value } of store.scan('webhook:')) {
    events.push(JSON.parse(value).event.action)
    await store.take(key)
  }
  expect(events).toEqual(['copy'])
  return copied
}

test('10,000 users go from SQLite, Redis and PostgreSQL to each other, first from under a running service', {
  timeout: 1_200_000,
}, async () => {
  for (const { direction, counts, seconds } of await rehearse(10_000, copyUnderUse)) {
    const all = Object.values(counts).reduce((sum, { to }) => sum + to, 0)
    console.log(`${direction}: ${all} values, ${counts.user?.to} users, ${counts.session?.to} sessions, ${seconds} s`)
  }
})
