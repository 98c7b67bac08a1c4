import { randomUUID } from 'node:crypto'
import fc from 'fast-check'
import { describe, test } from 'vitest'
import { describeStoreContract as describePublished } from '../../src/integrations/testing/store.ts'
import type { Store } from '../../src/store/store.ts'
import { storeCommands } from './model.ts'

/**
 * Runs the published contract suite, and calls in any order against a model, over two handles of the same data (or one
 * handle twice, if there can be but one). All keys begin with the prefix; some values live forever.
 */
export function describeStoreContract(
  name: string,
  open: () => Promise<readonly [Store, Store]>,
  keyPrefix = 'test:',
): void {
  describePublished({ describe, test }, { name, open, keyPrefix })

  test(`${name} does as a plain map with versions does, in any order of calls`, async () => {
    const [store, other] = await open()
    await fc.assert(
      fc.asyncProperty(fc.commands(storeCommands, { maxCommands: 40 }), (commands) =>
        fc.asyncModelRun(
          () => ({
            model: { values: new Map(), sets: new Map() },
            real: { store, other, id: `${keyPrefix}${randomUUID()}:` },
          }),
          commands,
        ),
      ),
      { numRuns: 40 },
    )
    await Promise.all([store.close(), other.close()])
  })
}
