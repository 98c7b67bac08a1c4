import { expect, test } from 'vitest'
import { isContinued, readHandOverLink } from '../../../src/browser/pages/held-claim.ts'

const ticket = `csh_${'a-Z_'.repeat(10)}a-Z`

test.each(['/cross-device/continue/', '/api/auth/cross-device/continue/'])('a ticket under %s is read', (folder) => {
  const link = { ticket: `${ticket}order_1`, orderId: 'order_1', pathAfter: `${folder}order_1` }
  expect(readHandOverLink(`${folder}${ticket}order_1`)).toEqual(link)
  expect(isContinued(`${folder}${ticket}order_1`)).toBe(true)
  // What the page leaves in the address bar has no ticket in it.
  expect(readHandOverLink(link.pathAfter)).toBe(undefined)
  expect(isContinued(link.pathAfter)).toBe(true)
})

test.each([
  ['/cross-device/continue/', true],
  [`/cross-device/continue/${ticket}`, true],
  [`/cross-device/continue/csx_${ticket.slice(4)}order`, true],
  [`/cross-device/claim/${ticket}order`, false],
])('%s has none', (path, continued) => {
  expect([readHandOverLink(path), isContinued(path)]).toEqual([undefined, continued])
})
