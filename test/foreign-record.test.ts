import { expect, test } from 'vitest'
import { challengeMessage } from '../src/challenge.ts'
import { whyForeign } from '../src/foreign-record.ts'
import { OriginPolicy } from '../src/origin-policy.ts'

const origin = 'https://app.example'
const policy = (trusted: string[], enforce = true) => new OriginPolicy({ enforce, own: origin, trusted })
const challenge = { challengeId: 'c', nonce: 'n', origin, issuedAt: 0, expiresAt: 0 }

/** The message of a nonce, or of an order. */
function messageOf(appName: string, kind: 'nonce' | 'order'): string {
  if (kind === 'nonce') return challengeMessage(appName, { action: 'auth.login', ...challenge })
  return challengeMessage(appName, { action: 'auth.login', ...challenge }, { orderId: 'o', kind: 'login' })
}

test.each(['nonce', 'order'] as const)('a record of a %s is of the application that it names', (kind) => {
  const record = { origin, appName: 'App', message: messageOf('App', kind) }
  expect(whyForeign(record, 'App', policy([origin]))).toBeUndefined()
  // The message does not count if the name is stored beside it.
  const other = whyForeign({ ...record, message: messageOf('Bank', kind) }, 'Bank', policy([origin]))
  expect(other?.message).toMatch(/another application than "Bank"/)
})

test.each(['nonce', 'order'] as const)(
  'a record of a %s without a name is of the one that its message names',
  (kind) => {
    const names = [
      'App',
      'app',
      'App ',
      'App requests',
      'App requests authentication',
      'App requests approval',
      'Ap',
      '',
    ]
    for (const name of names) {
      const record = { origin, message: messageOf('App', kind) }
      expect(whyForeign(record, name, policy([origin])) === undefined, name).toBe(name === 'App')
      const reverse = { origin, message: messageOf(name, kind) }
      expect(whyForeign(reverse, 'App', policy([origin])) === undefined, name).toBe(name === 'App')
    }
  },
)

test('a record is foreign unless its origin is trusted now, if origins are enforced', () => {
  const record = { origin, appName: 'App', message: '' }
  expect(whyForeign(record, 'App', policy(['https://app.example.evil.example']))?.message).toMatch(/not trusted here/)
  expect(whyForeign(record, 'App', policy([], false))).toBeUndefined()
  const policies = policy([origin])
  expect(whyForeign(record, 'App', policies)).toBeUndefined()
  policies.replaceRules({ enforce: true, own: origin, trusted: [] })
  expect(whyForeign(record, 'App', policies)).toBeDefined()
})
