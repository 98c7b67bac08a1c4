import { afterEach, describe, vi } from 'vitest'
import type { StartDriver } from './driver.ts'
import { orderTests } from './orders.ts'
import { signInTests } from './sign-in.ts'

/** The contract of direct sign-in and of orders, held against a service; written once for every host. */
export function contractSuite(name: string, start: StartDriver): void {
  describe(name, () => {
    afterEach(() => void vi.useRealTimers())
    describe('direct sign-in', () => signInTests(start))
    describe('orders', () => orderTests(start))
  })
}
