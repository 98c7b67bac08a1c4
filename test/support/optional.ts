import { spawnSync } from 'node:child_process'
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/** The Python of the system, which has the system's packages. The first one on the PATH may be another. */
export const systemPython = '/usr/bin/python3'

/** How to see that a part is installed, if it is not a program that knows `--version`. */
const checks: Readonly<Record<string, readonly [string, ...string[]]>> = {
  // Its programs are not on the PATH.
  postgresql: ['sh', '-c', 'ls /usr/lib/postgresql/*/bin/postgres && psql --version'],
  'python3-grpcio': [systemPython, '-c', 'import grpc'],
  'python3-cryptography': [systemPython, '-c', 'import cryptography'],
  'python3-jwt': [systemPython, '-c', 'import jwt, cryptography'],
  'python3-authlib': [systemPython, '-c', 'import authlib.integrations.requests_client'],
  'python3-protobuf': [systemPython, '-c', 'import google.protobuf'],
  // The plugin itself waits for a request of the compiler.
  'protobuf-compiler-grpc': ['sh', '-c', 'protoc --version && command -v grpc_python_plugin'],
  'python3-hypercorn': ['hypercorn', '--help'],
  'an SMTP server of Python': [systemPython, '-W', 'ignore', '-c', 'import smtpd'],
  'python3-yaml': [systemPython, '-c', 'import yaml'],
  // With root in a virtual machine they are; many containers do not permit them.
  'overlay mounts': [
    'unshare',
    '--mount',
    'sh',
    '-c',
    'mount --make-rprivate / && mount -t tmpfs none /mnt && mkdir /mnt/u /mnt/w && mount -t overlay none -o lowerdir=/,upperdir=/mnt/u,workdir=/mnt/w /mnt && setpriv --version',
  ],
  // To fill the folder of an image, as the owners of its files.
  'buildah and debootstrap, as root': ['sh', '-c', 'buildah --version && debootstrap --version && test "$(id -u)" = 0'],
  'webkit2gtk-driver': ['sh', '-c', 'command -v WebKitWebDriver && command -v Xvfb'],
  'libapache2-mod-auth-openidc': ['sh', '-c', 'apache2 -v && test -e /usr/lib/apache2/modules/mod_auth_openidc.so'],
  'go-oidc': ['test', '-d', '/usr/share/gocode/src/github.com/coreos/go-oidc'],
  'python3-requests-oauthlib': [systemPython, '-c', 'import requests_oauthlib'],
  'python3-social-django': [systemPython, '-c', 'import django, jose, social_django'],
  // Dovecot as in the test runs as root only.
  'Roundcube and Dovecot': [
    'sh',
    '-c',
    'dovecot --version && test -e /usr/share/roundcube/index.php && php -m | grep -q pdo_sqlite && test "$(id -u)" = 0',
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

/**
 * Names the folder in which a run keeps what its test files found out: a file for each part, which says whether it is
 * there.
 */
const variable = 'COUNTERSIGN_TEST_PARTS'

/**
 * Whether a part is installed: a program, packages of the system, or limits that are high enough. If it is missing and
 * REQUIRE_ALL_PARTS=1, as on a build machine, it throws instead.
 */
export function hasPart(part: string): boolean {
  const found = findPart(part)
  if (!found && process.env.REQUIRE_ALL_PARTS === '1') {
    throw new Error(`this machine does not have ${part}, or it does not run`)
  }
  return found
}

function findPart(part: string): boolean {
  const folder = process.env[variable]
  const file = folder === undefined ? undefined : join(folder, part)
  const known = file !== undefined && existsSync(file) ? readFileSync(file, 'utf8') : ''
  // Empty while another test file is writing it.
  if (known !== '') return known === 'found'
  const [program, ...args] = checks[part] ?? [part, '--version']
  const { error, status } = spawnSync(program, args, { stdio: 'ignore' })
  const found = error === undefined && status === 0
  if (file !== undefined) writeFileSync(file, found ? 'found' : 'missing')
  return found
}

/** Says at the end of a run which parts its tests looked for in vain. */
export function setup(): () => void {
  const folder = mkdtempSync(join(tmpdir(), 'countersign-parts-'))
  process.env[variable] = folder
  return () => {
    for (const part of readdirSync(folder)) {
      if (findPart(part)) continue
      process.stderr.write(`SKIPPED: the tests that need ${part}, which this machine does not have\n`)
    }
    rmSync(folder, { recursive: true, force: true })
  }
}
