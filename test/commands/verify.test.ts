import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { describe, expect, test } from 'vitest'
import { verifyCommand } from '../../src/commands/verify.ts'
import { type Ran, runHere, runMain } from '../support/command.ts'
import { accepted, inCamelCase, refused } from '../support/proofs.ts'
import { folderOfFile } from '../support/temporary-folder.ts'

const folder = folderOfFile()

/** Runs the command in this process. */
function run(args: readonly string[], stdin: string | Iterable<Uint8Array> = ''): Promise<Ran> {
  return runHere(verifyCommand, args, Readable.from(typeof stdin === 'string' ? [Buffer.from(stdin)] : stdin))
}

/** Runs it as a process, without any setting, in a folder of its own. */
const spawned = (args: readonly string[], stdin = '') => runMain(['verify', ...args], { cwd: folder, stdin })

function fileOf(content: unknown): string {
  const file = join(folder, `${crypto.randomUUID()}.json`)
  writeFileSync(file, typeof content === 'string' ? content : JSON.stringify(content))
  return file
}

const { artifact, owner } = accepted[0]!
/** As services signed before the text had the payload. */
const withoutLine = accepted.find(({ name }) => name === 'nimiq')!.artifact
const context = ['--app-name', 'Example', '--origin', 'https://app.example']
const ownerArgs = ['--adapter', 'nimiq', '--owner-address', owner.address!, '--owner-key', owner.publicKeyHex!]
const payload = '{"to":"Green Bakery", "currency":"NIM", "amount":250}'
const file = fileOf(artifact)

describe('as a process, without settings or a store', () => {
  test('exits with 0 and says in one line what was proven', async () => {
    const { code, stdout, stderr } = await spawned(['-', ...context, ...ownerArgs], JSON.stringify(artifact))
    expect(stderr).toBe('')
    expect(stdout).toMatch(/^valid: NQ[\dA-Z ]+ \(nimiq\) signed order \S+ about sha256:\S+, issued at \d{4}-[^\n]+\n$/)
    expect(stdout).toContain(owner.address)
    expect(code).toBe(0)
  })

  test('exits with 1 and says in one line why it is refused', async () => {
    const args = [file, '--app-name', 'Example', '--origin', 'https://other.example']
    expect(await spawned(args)).toEqual({
      code: 1,
      stdout: '',
      stderr: 'ORIGIN_MISMATCH: The text was signed for "https://app.example", not "https://other.example"\n',
    })
  })

  test('exits with 2 for wrong usage', async () => {
    const { code, stdout, stderr } = await spawned([file, '--app-name', 'Example'])
    expect(stderr).toBe('countersign verify: --origin is needed; --help shows the usage\n')
    expect([code, stdout]).toEqual([2, ''])
  })
})

test('the help names every option', async () => {
  const { code, stdout } = await run(['--help'])
  expect(code).toBe(0)
  const others = ['--payload', '--payload-hash', '--payload-line', '--not-before', '--evm-rpc', '--json']
  for (const name of [...context, ...ownerArgs, ...others]) {
    if (name.startsWith('--')) expect(stdout).toContain(`${name} `)
  }
})

describe('a proof holds', () => {
  test.each<[string, unknown, readonly string[]]>([
    ['in the spelling of clients', inCamelCase(artifact), []],
    ['within the answer of FinalizeOrder', { ok: true, proofArtifact: inCamelCase(artifact) }, []],
    ['within that answer in the spelling of the protocol', { proof_artifact: artifact }, []],
    ['behind a byte order mark', `\uFEFF${JSON.stringify(artifact)}`, []],
    ['with the hash', artifact, ['--payload-hash', artifact.payload_hash!]],
    ['with the payload', artifact, ['--payload', fileOf(payload)]],
    ['whose text lacks the payload', withoutLine, ['--payload', fileOf(payload), '--payload-line', 'optional']],
    ['with its adapter', artifact, ['--adapter', 'nimiq']],
    ['with its owner', artifact, ownerArgs],
    ['with a day', artifact, ['--not-before', '2026-01-01']],
    ['with a time', artifact, ['--not-before', '2026-01-01T00:00:00+01:00']],
    ['with epoch milliseconds', artifact, ['--not-before', '1767225600000']],
    [
      'with an RPC that is not needed',
      artifact,
      ['--evm-rpc', '1=https://rpc.example', '--evm-rpc=10=https://b.example'],
    ],
  ])('%s', async (_name, content, args) => {
    const { code, stderr } = await run([fileOf(content), ...context, ...args])
    expect(stderr).toBe('')
    expect(code).toBe(0)
  })

  test('whose text lacks the payload only if the option says so', async () => {
    const { code, stderr } = await run([fileOf(withoutLine), ...context])
    expect([code, stderr]).toEqual([1, expect.stringMatching(/^PAYLOAD_MISMATCH: /)])
  })

  test('and JSON has all that it says', async () => {
    const { code, stdout } = await run([file, ...context, '--json'])
    expect(code).toBe(0)
    expect(JSON.parse(stdout)).toMatchObject({
      valid: true,
      adapterId: 'nimiq',
      displayTitle: 'Zahlung über 250 NIM 🥐',
      payload: artifact.payload,
    })
  })
})

describe('a proof is refused', () => {
  test.each<[string, readonly string[]]>([
    ['PAYLOAD_MISMATCH', ['--payload-hash', 'sha256:other']],
    ['PAYLOAD_MISMATCH', ['--payload', fileOf('{"amount":25}')]],
    ['ADAPTER_UNKNOWN', ['--adapter', 'ed25519']],
    ['WRONG_WALLET', ['--adapter', 'nimiq', '--owner-key', '00'.repeat(32)]],
    ['TOO_OLD', ['--not-before', '2200-01-01']],
  ])('with %s for %j', async (reason, args) => {
    const { code, stdout, stderr } = await run([file, ...context, ...args])
    expect(stderr).toMatch(new RegExp(`^${reason}: [^\\n]+\\n$`))
    expect([code, stdout]).toEqual([1, ''])
  })

  test('if a file has no JSON, or no artifact', async () => {
    for (const content of ['', '{', 'null', '[]', '{"proofArtifact":"text"}']) {
      const { code, stderr } = await run(['-', ...context], content)
      expect(stderr).toMatch(/^MESSAGE_MALFORMED: [^\n]+\n$/)
      expect(code).toBe(1)
    }
  })

  test('with its reason as JSON', async () => {
    const { artifact, reason } = refused.find(({ name }) => name === 'text with two origins')!
    const { code, stdout, stderr } = await run(['-', ...context, '--json'], JSON.stringify(artifact))
    expect(JSON.parse(stdout)).toEqual({ valid: false, reason, message: 'The signed text has the line Origin twice' })
    expect([code, stderr]).toEqual([1, ''])
  })
})

describe('the usage is wrong', () => {
  test.each<[string, readonly string[]]>([
    ['it takes one FILE', [...context]],
    ['it takes one FILE', [file, file, ...context]],
    ['--app-name is needed', [file, '--origin', 'https://app.example']],
    // From a variable of the shell that is not set.
    ['--payload-hash is empty', [file, ...context, '--payload-hash', '']],
    ['--owner-key is empty', [file, ...context, ...ownerArgs.slice(0, -1), '']],
    ['--origin stands twice', [file, ...context, '--origin', 'https://app.example']],
    ['--owner-address and --owner-key need --adapter', [file, ...context, '--owner-key', '00']],
    ['owner.address is not an address of nimiq', [file, ...context, '--adapter', 'nimiq', '--owner-address', 'NQ00']],
    ['unknown adapter "bitcoin"', [file, ...context, '--adapter', 'bitcoin']],
    ['origin must be one such as', [file, '--app-name', 'Example', '--origin', 'app.example']],
    ['--not-before must be a time', [file, ...context, '--not-before', 'yesterday']],
    ['--payload-line must be required or optional', [file, ...context, '--payload-line', 'no']],
    ['--evm-rpc must be CHAIN=URL', [file, ...context, '--evm-rpc', 'https://rpc.example/key']],
    [
      '--evm-rpc has a chain twice',
      [file, ...context, '--evm-rpc', '1=https://a.example', '--evm-rpc', '1=https://b.example'],
    ],
    ['evmRpc must have http or https addresses', [file, ...context, '--evm-rpc', '1=ftp://a.example/key']],
    ['payload is not valid JSON', [file, ...context, '--payload', fileOf('{')]],
    ['cannot read "missing.json": ENOENT', ['missing.json', ...context]],
    ['has more than 262144 bytes', [fileOf(`"${'a'.repeat(300_000)}"`), ...context]],
    ['unknown argument "--ap"', [file, ...context, '--ap']],
    ['unknown argument "--a\\nb"', [file, ...context, '--a\nb']],
  ])('%s', async (message, args) => {
    const { code, stdout, stderr } = await run(args)
    expect(stderr).toMatch(/^countersign verify: [^\n]+; --help shows the usage\n$/)
    expect(stderr).toContain(message)
    expect(stderr).not.toContain('/key')
    expect([code, stdout]).toEqual([2, ''])
  })
})

test('it stops to read what has no end', async () => {
  let chunks = 0
  function* zeros(): Generator<Uint8Array> {
    for (; chunks < 10_000; chunks++) yield Buffer.alloc(1024)
  }
  const { code, stderr } = await run(['-', ...context], zeros())
  expect(stderr).toContain('"-" has more than 262144 bytes')
  expect(code).toBe(2)
  expect(chunks).toBeLessThan(1000)
})
