import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { run } from './command.ts'

/** Debian's next release, whatever release this machine has. */
const release = 'trixie'

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
 * Downloads packages of Debian's next release, and unpacks them into `root` of a folder. Nothing is installed, and apt
 * keeps what it knows of the release in the folder, too.
 */
export async function unpackNewer(packages: readonly string[], folder: string): Promise<void> {
  const [state, cache, packed] = [join(folder, 'state'), join(folder, 'cache'), join(folder, 'packed')]
  const root = join(folder, 'root')
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
