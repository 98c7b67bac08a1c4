import { expect, test } from 'vitest'
import { mismatchReason } from '../../src/base/record.ts'
import { OriginPolicy } from '../../src/core/origin-policy.ts'

const origin = 'https://app.example'
const policy = (trusted: string[], enforce = true) => new OriginPolicy({ enforce, own: origin, trusted })

test('a record is of the application that it names, letter by letter', () => {
  for (const name of ['App', 'app', 'App ', 'App requests', 'App requests approval', 'Ap', '']) {
    const reason = mismatchReason({ origin, appName: name }, 'App', policy([origin]))
    if (name === 'App') expect(reason).toBeUndefined()
    else expect(reason?.message).toMatch(/another application than "App"/)
  }
})

test('a record is foreign unless its origin is trusted now, if origins are enforced', () => {
  const record = { origin, appName: 'App' }
  expect(mismatchReason(record, 'App', policy(['https://app.example.evil.example']))?.message).toMatch(
    /not trusted here/,
  )
  expect(mismatchReason(record, 'App', policy([], false))).toBeUndefined()
  const policies = policy([origin])
  expect(mismatchReason(record, 'App', policies)).toBeUndefined()
  policies.replaceRules({ enforce: true, own: origin, trusted: [] })
  expect(mismatchReason(record, 'App', policies)).toBeDefined()
})
