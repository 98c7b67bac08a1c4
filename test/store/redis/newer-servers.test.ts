import { symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { StoreOpenError } from '../../../src/store/implementation.ts'
import { openStore } from '../../../src/store/open.ts'
import { unpackNewer } from '../../support/newer-packages.ts'
import { hasPart } from '../../support/optional.ts'
import { killServers, RedisServer } from '../../support/redis-server.ts'
import { folderOfFile } from '../../support/temporary-folder.ts'
import { describeStoreContract } from '../contract.ts'

/** The servers' packages, with Redis 8 and Valkey 8, and all libraries that they load. */
const packages = [
  'redis-tools',
  'valkey-tools',
  'libatomic1',
  'libc6',
  'libcap2',
  'libgcc-s1',
  'libjemalloc2',
  'liblzf1',
  'libssl3t64',
  'libstdc++6',
  'libsystemd0',
  'libzstd1',
  'zlib1g',
]

const folder = folderOfFile()
const root = join(folder, 'root')
afterAll(() => {
  killServers()
})

/** The command that runs a server with the libraries of its release. */
function programOf(name: string): readonly string[] {
  const program = join(root, 'usr/bin', `${name}-server`)
  const libraries = join(root, 'usr/lib/x86_64-linux-gnu')
  return [
    join(root, 'usr/lib64/ld-linux-x86-64.so.2'),
    '--library-path',
    libraries,
    '--argv0',
    `${name}-server`,
    program,
  ]
}

describe.skipIf(!hasPart('apt-get') || process.arch !== 'x64')('a newer server', () => {
  beforeAll(async () => {
    await unpackNewer(packages, folder)
    // The server and the checker of its files are one program, which goes by its name.
    for (const name of ['redis', 'valkey']) symlinkSync(`${name}-check-rdb`, join(root, 'usr/bin', `${name}-server`))
  }, 300_000)

  describe.each([
    ['Redis 8', 'redis', /^redis_version:8\./m],
    ['Valkey 8', 'valkey', /^valkey_version:8\./m],
  ])('%s', (name, program, version) => {
    let server: RedisServer
    beforeAll(async () => {
      server = await RedisServer.startProgram(programOf(program))
    })
    afterAll(() => server[Symbol.asyncDispose]())

    test('is the one that was asked for', async () => {
      expect(await server.cli('INFO', 'server')).toMatch(version)
    })

    describeStoreContract(name, async () => [await openStore(server.url), await openStore(server.url)])

    test.each([
      [['~*', '&*', '+@all', '-getdel'], /not permitted to run GETDEL \(NOPERM\)\. .*docs\/operations\.md/],
      [['~*', '&*', '+@all', '-zadd'], /not permitted to run ZADD \(NOPERM\)\. .*docs\/operations\.md/],
      [['~*', '&*', '+@all', '-spublish'], /not permitted to run SPUBLISH \(NOPERM\)\. .*docs\/operations\.md/],
      [['~other:*', '&*', '+@all'], /not permitted to use the keys .*docs\/operations\.md/],
      [['~*', '+@all'], /not permitted to use the channels .*docs\/operations\.md/],
    ])('names the permission that a user with %j lacks, also within a script', async (permissions, problem) => {
      await server.cli('ACL', 'SETUSER', 'signer', 'reset', 'on', '>s3cret', ...permissions)
      const opening = openStore(`redis://signer:s3cret@127.0.0.1:${server.port}`)
      await expect(opening).rejects.toThrow(StoreOpenError)
      await expect(opening).rejects.toThrow(problem)
    })
  })
})
