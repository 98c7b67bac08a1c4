import { rmSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { expect, onTestFinished, test } from 'vitest'
import { runTerminal, terminalIn } from './terminal-programs.ts'

test('the program by curl alone has 20 lines at most, and prints who is signed in', async () => {
  const script = await terminalIn('sh')
  expect(script.trimEnd().split('\n').length).toBeLessThanOrEqual(20)
  const { printed, session } = await runTerminal('sh', ['-c', script])
  expect(JSON.parse(printed)).toMatchObject({ sub: session.userId })
})

test('the program by openid-client prints the wallet of who is signed in', async () => {
  // The package is found from here. Clients refuse http, unless they are told not to.
  const execute = 'client.None(), { execute: [client.allowInsecureRequests] })'
  const program = (await terminalIn('js')).replace('client.None())', execute)
  const file = fileURLToPath(new URL('terminals-program.mjs', import.meta.url))
  writeFileSync(file, program)
  onTestFinished(() => rmSync(file, { force: true }))
  const { printed, wallet } = await runTerminal(process.execPath, [file])
  expect(printed.trim()).toBe(wallet.address.replaceAll(' ', ''))
})
