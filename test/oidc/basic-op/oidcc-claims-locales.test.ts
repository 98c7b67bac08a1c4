import { expect, test } from 'vitest'
import { newRequest, signIn } from './support.ts'

test('languages of claims are no error', async () => {
  expect((await signIn({ request: newRequest({ claims_locales: 'se' }) })).claims.sub).toMatch(/^usr_/)
})
