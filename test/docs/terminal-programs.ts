import { spawn } from 'node:child_process'
import { createInterface } from 'node:readline'
import { text } from 'node:stream/consumers'
import { expect, onTestFinished } from 'vitest'
import { allowCode, startDevices } from '../oidc/devices.ts'
import { fileWith } from '../oidc/support.ts'
import { readFromRoot } from '../support/repository.ts'
import { blocksOf } from './blocks.ts'

const blocks = blocksOf(await readFromRoot('docs/terminals.md'))

/** The program of docs/terminals.md in a language. */
export function terminalIn(language: string): string {
  return blocks.find((each) => each.language === language)?.text ?? ''
}

/** Runs a program of the page with the page's own clients, and types the code that it shows. */
export async function runTerminal(command: string, args: readonly string[]) {
  const { url } = await startDevices({ oidc: { clients: fileWith(terminalIn('json')) } })
  const child = spawn(command, args, { env: { ...process.env, ISSUER: url }, stdio: ['ignore', 'pipe', 'pipe'] })
  onTestFinished(() => void child.kill())
  const printed = text(child.stdout)
  const { value: line = '' } = await createInterface(child.stderr)[Symbol.asyncIterator]().next()
  const [, address, userCode = ''] = /^Open (\S+) and type (\S+)$/.exec(line) ?? []
  expect(address, line).toBe(`${url}/device`)
  const { session, wallet } = await allowCode(url, userCode)
  return { session, wallet, printed: await printed }
}
