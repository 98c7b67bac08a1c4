/**
 * Puts back what `npm install` leaves out of package-lock.json when the registry it talks to lacks a package for
 * another platform: without the entry `npm ci` refuses the lock. Run it after every `npm install` that changes
 * dependencies.
 */
import { readFileSync, writeFileSync } from 'node:fs'

interface LockEntry {
  readonly version: string
  readonly optionalDependencies?: Readonly<Record<string, string>>
  readonly dev?: boolean
  readonly optional?: boolean
  readonly os?: readonly string[]
  readonly cpu?: readonly string[]
  readonly libc?: readonly string[]
}

const file = new URL('../package-lock.json', import.meta.url)
const lock = JSON.parse(readFileSync(file, 'utf8')) as { packages: Record<string, LockEntry> }

const systems = ['android', 'darwin', 'freebsd', 'linux', 'openharmony', 'win32', 'netbsd', 'openbsd', 'aix', 'sunos']
const processors = [
  'arm64',
  'x64',
  'arm',
  'armv7',
  'ia32',
  'ppc64',
  'riscv64',
  's390x',
  'loong64',
  'mips64el',
  'wasm32',
]

/** The system, processor and C library in a platform package's name, such as `@scope/tool-linux-x64-musl`. */
function platformOf(name: string): Pick<LockEntry, 'os' | 'cpu' | 'libc'> | undefined {
  const words = name.split(/[/-]/)
  const os = words.find((word) => systems.includes(word))
  const cpu = words.find((word) => processors.includes(word))
  if (os === undefined || cpu === undefined) return undefined
  const libc = words.find((word) => word.startsWith('musl') || word.startsWith('gnu'))
  return {
    os: [os],
    cpu: [cpu === 'armv7' ? 'arm' : cpu],
    ...(os === 'linux' && libc !== undefined ? { libc: [libc.startsWith('musl') ? 'musl' : 'glibc'] } : {}),
  }
}

let added = 0
for (const [path, entry] of Object.entries(lock.packages)) {
  for (const [name, version] of Object.entries(entry.optionalDependencies ?? {})) {
    const known = Object.keys(lock.packages).some((other) => other.endsWith(`node_modules/${name}`))
    const platform = platformOf(name)
    // Only exact versions: a range would have to be resolved by the registry that does not have it.
    if (known || path === '' || platform === undefined || !/^\d/.test(version)) continue
    lock.packages[`node_modules/${name}`] = {
      version,
      ...(entry.dev ? { dev: true } : {}),
      optional: true,
      ...platform,
    }
    added++
  }
}
lock.packages = Object.fromEntries(Object.entries(lock.packages).sort(([a], [b]) => (a < b ? -1 : 1)))
writeFileSync(file, `${JSON.stringify(lock, null, 2)}\n`)
process.stdout.write(`${added} entries put back\n`)
