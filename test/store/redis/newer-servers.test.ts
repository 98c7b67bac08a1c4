import { execFile } from 'node:child_process'
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { StoreOpenError } from '../../../src/store/implementation.ts'
import { openStore } from '../../../src/store/open.ts'
import { hasPart } from '../../support/optional.ts'
import { killServers, RedisServer } from '../../support/redis-server.ts'
import { describeStoreContract } from '../contract.ts'

const run = promisify(execFile)

/** Debian's release with Redis 8 and Valkey 8, whatever release this machine has. */
const release = 'trixie'

/** The servers' packages, and all libraries that they load. */
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

const folder = mkdtempSync(join(tmpdir(), 'countersign-newer-servers-'))
const root = join(folder, 'root')
afterAll(() => {
  killServers()
  rmSync(folder, { recursive: true, force: true })
})

/** Debian's archive, by the address that this machine has for it. */
function debianArchive(): string {
  const lists = [
    '/etc/apt/sources.list',
    ...readdirSync('/etc/apt/sources.list.d').map((name) => `/etc/apt/sources.list.d/${name}`),
  ]
  for (const list of lists) {
    try {
      const [, uri] =
        /^(?:URIs:|deb(?: \[[^\]]*\])?)\s+(https?:\S+\/debian)\/?(?:\s|$)/m.exec(readFileSync(list, 'utf8')) ?? []
      if (uri !== undefined) return uri
    } catch {
      // Not every machine has each of them.
    }
  }
  throw new Error('this machine has no archive of Debian in its sources')
}

/**
 * Unpacks the packages into a folder. Nothing is installed, and apt keeps what it knows of the release in a folder of
 * its own.
 */
async function unpack(): Promise<void> {
  const [state, cache, packed] = [join(folder, 'state'), join(folder, 'cache'), join(folder, 'packed')]
  for (const path of [join(state, 'lists/partial'), join(cache, 'archives/partial'), packed, root]) {
    mkdirSync(path, { recursive: true })
  }
  const sources = join(folder, 'sources.list')
  const keys = '/usr/share/keyrings/debian-archive-keyring.gpg'
  writeFileSync(sources, `deb [signed-by=${keys}] ${debianArchive()} ${release} main\n`)
  const options = [
    `Dir::State=${state}`,
    'Dir::State::status=/var/lib/dpkg/status',
    `Dir::Cache=${cache}`,
    `Dir::Etc::sourcelist=${sources}`,
    'Dir::Etc::sourceparts=-',
    'APT::Sandbox::User=root',
  ].flatMap((option) => ['-o', option])
  await run('apt-get', [...options, 'update'])
  await run('apt-get', [...options, 'download', ...packages.map((name) => `${name}/${release}`)], { cwd: packed })
  for (const file of readdirSync(packed)) await run('dpkg', ['-x', join(packed, file), root])
}

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
    await unpack()
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
