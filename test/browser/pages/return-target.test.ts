import { expect, test } from 'vitest'
import { returnTarget } from '../../../src/shared/return-path.ts'
import { hostileReturnPaths, returnPaths } from '../../support/return-paths.ts'

const page = 'https://app.example/api/auth/sign-in'

function targetOf(returnTo: string): string {
  return returnTarget(new URL(`${page}?${new URLSearchParams({ returnTo })}`)).href
}

test.each(returnPaths)('the sign-in page leads to %j', (path) => {
  expect(targetOf(path)).toBe(new URL(path, page).href)
})

test.each([...hostileReturnPaths, `/${'x'.repeat(2048)}`])('in place of %j it leads to the root', (text) => {
  expect(targetOf(text)).toBe('https://app.example/')
})

test.each(['/api/auth/sign-in', '/api/auth/sign-in?returnTo=%2Fapi%2Fauth%2Fsign-in#x', '/api/./auth/../auth/sign-in'])(
  'it does not lead to itself, as %j',
  (path) => {
    expect(targetOf(path)).toBe('https://app.example/')
  },
)

test('without the parameter it leads to the root, and of several the first one counts', () => {
  expect(returnTarget(new URL(page)).href).toBe('https://app.example/')
  expect(returnTarget(new URL(`${page}#returnTo=/there`)).href).toBe('https://app.example/')
  expect(returnTarget(new URL(`${page}?returnTo=//evil.example&returnTo=/there`)).href).toBe('https://app.example/')
})
