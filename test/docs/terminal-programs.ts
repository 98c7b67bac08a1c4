import { spawn } from 'node:child_process'
import { createInterface } from 'node:readline'
import { text } from 'node:stream/consumers'
import { expect, onTestFinished } from 'vitest'
import { allowCode, startDevices } from '../oidc/devices.ts'
import { fileWith } from '../oidc/support.ts'
import { readFromRoot } from '../support/repository.ts'
import { blocksOf } from './blocks.ts'

const files = { sh: 'sign-in.sh', js: 'sign-in.mjs', go: 'sign-in.go' } as const

/** The program of examples/oidc/terminals in a language. */
export async function terminalIn(language: keyof typeof files): Promise<string> {
  return await readFromRoot(`examples/oidc/terminals/${files[language]}`)
}

const [clients] = blocksOf(await readFromRoot('docs/terminals.md')).filter(({ language }) => language === 'json')

/** Runs a program with the clients of docs/terminals.md, and types the code that it shows. */
export async function runTerminal(command: string, args: readonly string[]) {
  const { url } = await startDevices({ oidc: { clients: fileWith(clients?.text ?? '') } })
  const child = spawn(command, args, { env: { ...process.env, ISSUER: url }, stdio: ['ignore', 'pipe', 'pipe'] })
  onTestFinished(() => void child.kill())
  const printed = text(child.stdout)
  const { value: line = '' } = await createInterface(child.stderr)[Symbol.asyncIterator]().next()
  const [, address, userCode = ''] = /^Open (\S+) and type (\S+)$/.exec(line) ?? []
  expect(address, line).toBe(`${url}/device`)
  const { session, wallet } = await allowCode(url, userCode)
  return { session, wallet, printed: await printed }
}
