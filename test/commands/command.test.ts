import { describe, expect, test } from 'vitest'
import { allOptions } from '../../src/service/config.ts'
import { runMain } from '../support/command.ts'
import { readFromRoot } from '../support/repository.ts'

/** Runs the command as a process, with these environment variables only. */
const run = (args: readonly string[], env: Record<string, string> = {}) => runMain(args, { env })

test('--version prints the version of the package', async () => {
  const { version } = JSON.parse(await readFromRoot('package.json'))
  expect(await run(['--version'])).toEqual({ code: 0, stdout: `${version}\n`, stderr: '' })
})

test('the help names every argument and command, and the variables and defaults of those that are settings', async () => {
  const { code, stdout, stderr } = await run(['--help'])
  expect([code, stderr]).toEqual([0, ''])
  for (const name of ['--help, -h', '--version', '--lan', 'help COMMAND', 'verify'])
    expect(stdout).toContain(`  ${name} `)
  for (const { name: option, option: row } of allOptions) {
    if (!['port', 'host', 'store'].includes(option)) continue
    expect(stdout).toContain(`  --${option} ${option.toUpperCase()} `)
    expect(stdout).toContain(`variable ${row.variable}`)
    expect(stdout).toContain(String(row.default))
  }
  expect(await run(['help'])).toEqual({ code, stdout, stderr })
  expect(stdout).toMatch(/^To begin, run countersign /)
  expect(stdout.split('\n').filter((line) => line.length > 78)).toEqual([])
})

test('help and the name of a command show the help of that command', async () => {
  const help = await run(['help', 'verify'])
  expect(help.stdout).toMatch(/^Usage: countersign verify FILE /)
  expect(help).toEqual(await run(['verify', '--help']))
})

describe('wrong usage ends it with exit status 2 and one line', () => {
  test.each([
    [['--lna'], /unknown argument "--lna"/],
    [['verfy', 'proof.json'], /unknown argument "verfy"/],
    [['help', 'verfy'], /unknown argument "verfy"/],
    [['--port'], /--port needs a value/],
    [['--port', 'http'], /--port must be a whole number from 0 to 65535, not "http"/],
  ])('%j', async (args, message) => {
    const { code, stdout, stderr } = await run(args)
    expect(stderr).toMatch(new RegExp(`^countersign: ${message.source}; --help shows the usage\\n$`))
    expect([code, stdout]).toEqual([2, ''])
  })
})

test('a wrong setting ends it with exit status 78 and one line, so that a service manager does not try again', async () => {
  const { code, stdout, stderr } = await run([], { COUNTERSIGN_APP_NAME: 'a\tb' })
  expect(stderr).toMatch(/^countersign: appName \(COUNTERSIGN_APP_NAME\) must be [^\n]+\n$/)
  expect([code, stdout]).toEqual([78, ''])
  const together = await run([], { COUNTERSIGN_PUBLIC_URL: 'https://auth.example', COUNTERSIGN_DEMO_WALLET: 'on' })
  expect([together.code, together.stderr.split('\n').length]).toEqual([78, 2])
})

test('a service that cannot start ends it with exit status 1 and one line', async () => {
  const store = await run(['--store', 'mysql://user:secret@localhost'])
  expect(store.stderr).toMatch(/^countersign: The store must be one of sqlite:[^\n]+\n$/)
  expect(store.stderr).not.toContain('secret')
  expect([store.code, store.stdout]).toEqual([1, ''])
})
