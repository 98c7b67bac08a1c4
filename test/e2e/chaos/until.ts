import { setTimeout as pause } from 'node:timers/promises'

/**
 * Waits until a condition holds, looking every 50 ms; rejects, naming it, after a minute. A failed look counts as no.
 */
export async function until(what: string, holds: () => boolean | Promise<boolean>): Promise<void> {
  const startedAt = performance.now()
  let cause: unknown
  const look = async (): Promise<boolean> => {
    try {
      return await holds()
    } catch (error) {
      cause = error
      return false
    }
  }
  while (!(await look())) {
    if (performance.now() - startedAt > 60_000) throw new Error(`still waiting after a minute: ${what}`, { cause })
    await pause(50)
  }
}
