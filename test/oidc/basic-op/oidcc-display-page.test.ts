import { expect, test } from 'vitest'
import { newRequest, signIn } from './support.ts'

test('display=page shows the sign-in page', async () => {
  expect((await signIn({ request: newRequest({ display: 'page' }) })).shown).toEqual(['sign-in', 'consent'])
})
