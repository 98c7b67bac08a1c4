import { expect, test } from 'vitest'
import { newRequest, signIn } from './support.ts'

test('a parameter of no specification is ignored', async () => {
  const { answer } = await signIn({ request: newRequest({ extra: 'foobar' }) })
  expect(answer.searchParams.has('extra')).toBe(false)
})
