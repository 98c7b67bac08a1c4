import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'
import { run } from '../../support/command.ts'
import { accepted, refused } from '../../support/proofs.ts'

test('signing and verifying take bytes of another realm, as there are in tests with jsdom', async () => {
  const { stdout } = await run(process.execPath, [fileURLToPath(new URL('other-realm.ts', import.meta.url))])
  expect(stdout.trim().split('\n')).toEqual([
    ...Array.from({ length: 6 }, () => '128'),
    'own',
    ...accepted.map(() => 'accepted'),
    ...refused.map(({ reason }) => reason),
  ])
})
