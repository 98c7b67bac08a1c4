import { redisTlsCheck } from './certificates.ts'
import type { Check } from './check.ts'
import { clockCheck } from './clock.ts'
import type { Examination } from './examination.ts'
import { httpsCheck } from './https.ts'
import { forwardedHeadersCheck, originsCheck } from './origin.ts'
import { portCheck } from './port.ts'
import { publicUrlCheck, readinessCheck } from './public-url.ts'
import { redisCheck } from './redis.ts'
import { diskCheck, storeCheck } from './store.ts'
import { walletsCheck } from './wallets.ts'

/**
 * The checks that need settings which fit, in the order of the report. A check stands behind those that it needs. The longest row
 * of those that wait for each other takes 18 seconds at most.
 */
export const checks: readonly Check<Examination>[] = [
  redisTlsCheck,
  storeCheck,
  diskCheck,
  redisCheck,
  clockCheck,
  walletsCheck,
  portCheck,
  httpsCheck,
  publicUrlCheck,
  readinessCheck,
  forwardedHeadersCheck,
  originsCheck,
]
