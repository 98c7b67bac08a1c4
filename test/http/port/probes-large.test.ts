import { test } from 'vitest'
import { expectServedBesideProbes } from '../../support/unread-probes.ts'

test.runIf(process.platform === 'linux')(
  'with 2 GiB of heap, 23,406 probes of one address whose answers are never read keep no other from theirs',
  () => expectServedBesideProbes({ heapMiB: 2048, connections: 94 }),
)
