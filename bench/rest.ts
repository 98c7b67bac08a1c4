import { orderPaths, sessionPaths, signInPaths } from '../src/rest-paths.ts'

const base = '/api/auth'

/** The REST endpoints that are measured, where Countersign has them by default. */
export const restPaths = {
  nonce: `${base}/wallet${signInPaths.nonce}`,
  verify: `${base}/wallet${signInPaths.verify}`,
  session: base + sessionPaths.current,
  order: (step: 'start' | 'claim' | 'challenge' | 'approve' | 'finalize' | 'events'): string => base + orderPaths[step],
} as const
