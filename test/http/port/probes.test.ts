import { test } from 'vitest'
import { expectServedBesideProbes } from '../../support/unread-probes.ts'

test.runIf(process.platform === 'linux')(
  'with 256 MB of heap, 4,233 probes of one address whose answers are never read keep no other from theirs',
  () => expectServedBesideProbes({ heapMiB: 256, connections: 17 }),
)
