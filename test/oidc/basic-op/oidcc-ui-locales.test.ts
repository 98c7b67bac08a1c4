import { expect, test } from 'vitest'
import { newRequest, signIn } from './support.ts'

test('languages of no page are no error', async () => {
  expect((await signIn({ request: newRequest({ ui_locales: 'se' }) })).shown).toEqual(['sign-in', 'consent'])
})
