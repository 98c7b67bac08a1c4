import { afterAll, beforeAll, vi } from 'vitest'

/** Keeps Node's warnings about far deadlines out of the output: connect-node, the reference, sets timers for them. */
export function ignoreTimeoutOverflows(): void {
  const { emitWarning } = process
  beforeAll(() => {
    vi.spyOn(process, 'emitWarning').mockImplementation((...warning) => {
      if (!/does not fit into a 32-bit/.test(String(warning[0]))) Reflect.apply(emitWarning, process, warning)
    })
  })
  afterAll(() => void vi.restoreAllMocks())
}
