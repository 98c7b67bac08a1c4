import { spawnSync } from 'node:child_process'

/** What some tests need and a machine may lack: programs, packages of the system, or limits that are high enough. */
const optionalParts: readonly string[] = [
  'redis-server',
  'chromium',
  'python3-grpcio',
  'python3-cryptography',
  'python3-jwt',
  'python3-protobuf',
  'protobuf-compiler-grpc',
  'nginx',
  'caddy',
  'haproxy',
  'python3-hypercorn',
  'php',
  'go',
  'prometheus',
  'openssl',
  'prlimit',
  'curl',
  'script',
  'systemd-analyze',
  'python3-yaml',
  'overlay mounts',
  '11000 open files',
  'npm registry',
]

/** The Python of the system, which has the system's packages. The first one on the PATH may be another. */
export const systemPython = '/usr/bin/python3'

/** How to see that a part is installed, if it is not a program that knows `--version`. */
const checks: Readonly<Record<string, readonly [string, ...string[]]>> = {
  'python3-grpcio': [systemPython, '-c', 'import grpc'],
  'python3-cryptography': [systemPython, '-c', 'import cryptography'],
  'python3-jwt': [systemPython, '-c', 'import jwt, cryptography'],
  'python3-protobuf': [systemPython, '-c', 'import google.protobuf'],
  // The plugin itself waits for a request of the compiler.
  'protobuf-compiler-grpc': ['sh', '-c', 'protoc --version && command -v grpc_python_plugin'],
  'python3-hypercorn': ['hypercorn', '--help'],
  'python3-yaml': [systemPython, '-c', 'import yaml'],
  // With root in a virtual machine they are; many containers do not permit them.
  'overlay mounts': [
    'unshare',
    '--mount',
    'sh',
    '-c',
    'mount --make-rprivate / && mount -t tmpfs none /mnt && mkdir /mnt/u /mnt/w && mount -t overlay none -o lowerdir=/,upperdir=/mnt/u,workdir=/mnt/w /mnt && setpriv --version',
  ],
  nginx: ['nginx', '-v'],
  caddy: ['caddy', 'version'],
  haproxy: ['haproxy', '-v'],
  go: ['go', 'version'],
  openssl: ['openssl', 'version'],
  // Node raises the soft limit to the hard one when it starts, and its children have it from there.
  '11000 open files': ['sh', '-c', 'test "$(ulimit -n)" = unlimited || test "$(ulimit -n)" -ge 11000'],
  'npm registry': ['npm', 'view', 'pnpm@12.21.0', 'version', '--fetch-retries=0', '--fetch-timeout=10000'],
}

/** Whether a part is installed. If it is missing and REQUIRE_ALL_PARTS=1, as on a build machine, it throws instead. */
export function hasPart(part: string): boolean {
  const [program, ...args] = checks[part] ?? [part, '--version']
  const { error, status } = spawnSync(program, args, { stdio: 'ignore' })
  if (error === undefined && status === 0) return true
  if (process.env.REQUIRE_ALL_PARTS === '1') throw new Error(`this machine does not have ${part}, or it does not run`)
  return false
}

/** Says once for each missing part, before any test runs, that what needs it is skipped. */
export default function announceSkips(): void {
  for (const part of optionalParts) {
    if (part === 'redis-server' && process.env.REDIS_URL) continue
    if (!hasPart(part)) process.stderr.write(`SKIPPED: the tests that need ${part}, which this machine does not have\n`)
  }
}
