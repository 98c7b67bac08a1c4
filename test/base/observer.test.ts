import { expect, test } from 'vitest'
import { observers } from '../../src/base/observer.ts'

test('several observers are told in turn, and those that are absent are left out', () => {
  const told: string[] = []
  const first = (text: string): void => void told.push(`first ${text}`)
  const second = (text: string): void => void told.push(`second ${text}`)
  observers(first, undefined, second)('a')
  expect(told).toEqual(['first a', 'second a'])
  expect(observers(first, undefined)).toBe(first)
})
