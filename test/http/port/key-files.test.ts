import { copyFile, mkdir, readFile, rename, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import type { KeyPair } from '../../../src/base/pem.ts'
import { KeyFiles } from '../../../src/http/port/tls.ts'
import { keptLog } from '../../support/log-lines.ts'
import { hasPart } from '../../support/optional.ts'
import { replaceFile, trustedAuthority } from '../../support/tls.ts'

const withOpenssl = hasPart('openssl')
const authority = withOpenssl ? await trustedAuthority() : undefined
const pairs = withOpenssl ? await Promise.all([issue(), issue()]) : []
const lookMs = 20

function issue(days = 2) {
  return authority!.issue('localhost', days)
}

const settings = { cert: 'tls.cert (COUNTERSIGN_TLS_CERT)', key: 'tls.key (COUNTERSIGN_TLS_KEY)' }

async function open(cert: string, key: string) {
  const { logger, lines } = keptLog()
  const files = await KeyFiles.open({
    cert: { setting: settings.cert, file: cert },
    key: { setting: settings.key, file: key },
    log: logger,
  })
  onTestFinished(() => files.stop())
  const replaced: KeyPair[] = []
  files.watch((pair) => replaced.push(pair), lookMs)
  const problems = () => lines.filter(({ level }) => level === 'error').map(({ text, fields }) => [text, fields.cause])
  return { files, lines, problems, replaced }
}

/** Files of the first pair, of this test alone. */
async function ownFiles() {
  const folder = join(authority!.folder, crypto.randomUUID())
  await mkdir(folder)
  const [cert, key] = [join(folder, 'tls.crt'), join(folder, 'tls.key')]
  await copyFile(pairs[0]!.cert, cert)
  await copyFile(pairs[0]!.key, key)
  return { folder, cert, key }
}

describe.skipIf(!withOpenssl)('the files of the certificate and its key', () => {
  test('can begin with a byte order mark, which some editors write', async () => {
    const { cert, key } = await ownFiles()
    for (const file of [cert, key]) await writeFile(file, `\uFEFF${await readFile(file, 'utf8')}`)
    expect((await open(cert, key)).files.pair.cert).toBe(await readFile(pairs[0]!.cert, 'utf8'))
  })

  test('are noticed when they are written in place or renamed', async () => {
    const { cert, key } = await ownFiles()
    const { files, lines, problems, replaced } = await open(cert, key)
    await copyFile(pairs[1]!.cert, cert)
    await copyFile(pairs[1]!.key, key)
    await expect.poll(() => replaced.length).toBe(1)
    expect(files.pair.cert).toBe(await readFile(pairs[1]!.cert, 'utf8'))
    await replaceFile(key, pairs[0]!.key)
    await replaceFile(cert, pairs[0]!.cert)
    await expect.poll(() => replaced.length).toBe(2)
    expect(problems()).toEqual([])
    const told = { level: 'info', text: 'new TLS certificate in use' }
    expect(lines).toEqual(Array(2).fill({ ...told, fields: { subject: 'CN=localhost', validTo: expect.any(String) } }))
  })

  test('are noticed when a link to their folder is switched, as Kubernetes does', async () => {
    const [first, second] = [await ownFiles(), await ownFiles()]
    await replaceFile(second.cert, pairs[1]!.cert)
    await replaceFile(second.key, pairs[1]!.key)
    const link = join(first.folder, '..data')
    await symlink(first.folder, link)
    const { replaced } = await open(join(link, 'tls.crt'), join(link, 'tls.key'))
    await symlink(second.folder, `${link}_tmp`)
    await rename(`${link}_tmp`, link)
    await expect.poll(() => replaced.length).toBe(1)
  })

  test('stay in use if a new pair does not fit, which is logged once', async () => {
    const { cert, key } = await ownFiles()
    const { files, problems, replaced } = await open(cert, key)
    const before = files.pair
    await replaceFile(cert, pairs[1]!.cert)
    await expect.poll(() => problems().length).toBe(1)
    expect(problems()[0]).toEqual([
      'TLS certificate not replaced: the one before stays in use',
      `tls.key (COUNTERSIGN_TLS_KEY) must be a file with the private key of ${settings.cert} in PEM format, without a passphrase, and ${key} is not`,
    ])
    await writeFile(cert, 'not a certificate')
    await expect.poll(() => problems().length).toBe(2)
    await expect(files.reload()).rejects.toThrow(TypeError)
    expect([files.pair, replaced, problems().length]).toEqual([before, [], 2])
    await replaceFile(cert, pairs[1]!.cert)
    await replaceFile(key, pairs[1]!.key)
    await expect.poll(() => replaced.length).toBe(1)
  })

  test('stop the start with one line if they do not fit', async () => {
    const { cert, key } = await ownFiles()
    const refusals = await Promise.all(
      [
        ['/nowhere/tls.crt', key],
        [cert, '/nowhere/tls.key'],
        [key, key],
        [cert, cert],
        [cert, pairs[1]!.key],
      ].map(([a = '', b = '']) => open(a, b).then(String, ({ message }: TypeError) => message)),
    )
    const noKey = (file: string) =>
      `${settings.key} must be a file with the private key of ${settings.cert} in PEM format, without a passphrase, and ${file} is not`
    expect(refusals).toEqual([
      expect.stringMatching(/^tls\.cert \(COUNTERSIGN_TLS_CERT\) must be a file that can be read: ENOENT.*$/),
      expect.stringMatching(/^tls\.key \(COUNTERSIGN_TLS_KEY\) must be a file that can be read: ENOENT.*$/),
      `${settings.cert} must be a file with a certificate in PEM format, and ${key} is not`,
      noKey(cert),
      noKey(pairs[1]!.key),
    ])
  })

  test('are used with a warning if the certificate has expired', async () => {
    const expired = await issue(-1)
    const { lines } = await open(expired.cert, expired.key)
    expect(lines.map(({ level, text }) => [level, text])).toEqual([
      [
        'warn',
        expect.stringMatching(/^the certificate of tls\.cert \(COUNTERSIGN_TLS_CERT\) expired at 20\S+Z; renew it$/),
      ],
    ])
  })
})
