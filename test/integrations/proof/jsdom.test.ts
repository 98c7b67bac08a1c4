import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { run } from '../../support/command.ts'
import { hasPart } from '../../support/optional.ts'
import { root } from '../../support/repository.ts'
import { temporaryFolder } from '../../support/temporary-folder.ts'

const minuteMs = 60_000

const suite = `
import { expect, test } from 'vitest'
import { makeTestWallet } from '${root}/src/integrations/testing/index.ts'
import { verifyProofArtifact } from '${root}/src/integrations/proof/index.ts'
import { accepted } from '${root}/test/support/proofs.ts'

test('bytes of Node are not those of jsdom', () => {
  expect(document.body).toBeDefined()
  expect(Buffer.from('text')).not.toBeInstanceOf(Uint8Array)
})
test('a test wallet signs', () => expect(makeTestWallet().sign('text')).toMatch(/^[0-9a-f]{128}$/))
test.each(accepted)('$name', async ({ artifact, options }) => void (await verifyProofArtifact(artifact, options)))
`

describe.skipIf(!hasPart('npm registry'))('in vitest with jsdom', () => {
  test(
    'a test wallet signs, and proofs are verified',
    async () => {
      const folder = temporaryFolder()
      await writeFile(join(folder, 'package.json'), '{"private":true,"type":"module"}')
      await writeFile(join(folder, 'proofs.test.ts'), suite)
      const packages = ['jsdom@29.1.1', 'vitest@5.1.1']
      await run('npm', ['install', '--no-audit', '--no-fund', '--loglevel=error', ...packages], { cwd: folder })
      const vitest = [join(folder, 'node_modules/vitest/vitest.mjs'), 'run', '--environment', 'jsdom']
      const { stdout } = await run(process.execPath, vitest, { cwd: folder, env: { ...process.env, VITEST: '' } })
      expect(stdout).toMatch(/Tests .*\d\d passed/)
    },
    5 * minuteMs,
  )
})
