import { spawn } from 'node:child_process'
import { readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createInterface } from 'node:readline'
import { text } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'
import { expect, onTestFinished, test } from 'vitest'
import { allowCode, startDevices } from '../oidc/devices.ts'
import { fileWith } from '../oidc/support.ts'
import { blocksOf } from './blocks.ts'

const page = readFileSync(new URL('../../docs/terminals.md', import.meta.url), 'utf8')
const blocks = blocksOf(page)
const blockOf = (language: string): string => blocks.find((each) => each.language === language)?.text ?? ''

/** Runs a program of the page with the page's own clients, and types the code that it shows. */
async function run(command: string, args: readonly string[]) {
  const { url } = await startDevices({ oidc: { clients: fileWith(blockOf('json')) } })
  const child = spawn(command, args, { env: { ...process.env, ISSUER: url }, stdio: ['ignore', 'pipe', 'pipe'] })
  onTestFinished(() => void child.kill())
  const printed = text(child.stdout)
  const { value: line = '' } = await createInterface(child.stderr)[Symbol.asyncIterator]().next()
  const [, address, userCode = ''] = /^Open (\S+) and type (\S+)$/.exec(line) ?? []
  expect(address, line).toBe(`${url}/device`)
  const { session, wallet } = await allowCode(url, userCode)
  return { session, wallet, printed: await printed }
}

test('the program by curl alone has 20 lines at most, and prints who is signed in', async () => {
  const script = blockOf('sh')
  expect(script.trimEnd().split('\n').length).toBeLessThanOrEqual(20)
  const { printed, session } = await run('sh', ['-c', script])
  expect(JSON.parse(printed)).toMatchObject({ sub: session.userId })
})

test('the program by openid-client prints the wallet of who is signed in', async () => {
  // The package is found from here. Clients refuse http, unless they are told not to.
  const execute = 'client.None(), { execute: [client.allowInsecureRequests] })'
  const program = blockOf('js').replace('client.None())', execute)
  const file = fileURLToPath(new URL('terminals-program.mjs', import.meta.url))
  writeFileSync(file, program)
  onTestFinished(() => rmSync(file, { force: true }))
  const { printed, wallet } = await run(process.execPath, [file])
  expect(printed.trim()).toBe(wallet.address.replaceAll(' ', ''))
})
