import { expect, test } from 'vitest'
import { newRequest, signIn } from './support.ts'

test('display=popup shows the sign-in page', async () => {
  expect((await signIn({ request: newRequest({ display: 'popup' }) })).shown).toEqual(['sign-in', 'consent'])
})
