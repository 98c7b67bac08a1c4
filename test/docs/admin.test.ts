import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { adminCommands } from '../../src/commands/admin/admin.ts'
import { run } from '../support/command.ts'
import { readFromRoot, root } from '../support/repository.ts'
import { rest } from '../support/rest.ts'
import { startService } from '../support/service.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'
import { makeWallet, proofOf, type TestWallet } from '../support/wallet.ts'
import { blocksOf } from './blocks.ts'

const page = await readFromRoot('docs/admin.md')
const snippets = blocksOf(page)
  .filter(({ language }) => language === 'sh')
  .map(({ text }) => text)

test('every command of docs/admin.md runs, and the page names every command', { timeout: 120_000 }, async () => {
  const folder = temporaryFolder()
  const store = `sqlite:${join(folder, 'a.db')}`
  const { url } = await startService({ store })
  const wallet = makeWallet()
  const verify = async (signer: TestWallet) =>
    (await rest(url, '/wallet/verify', proofOf(signer, (await rest(url, '/wallet/nonce', {})).json))).json
  const signIn = async (signer = wallet) => (await verify(signer)).session
  const [session, other] = [await signIn(), await signIn(makeWallet())]
  await signIn()
  const [lost, replacement] = [makeWallet(), makeWallet()]
  const { token: lostToken, session: lostSession } = await verify(lost)
  await signIn(replacement)
  const lines = [...snippets.join('').matchAll(/^countersign .*$/gm)].map(([line]) => line)
  const commands = lines.map((line) => line.split(' ')[2])
  expect(new Set(commands)).toEqual(new Set(adminCommands.map(({ name }) => name)))
  const env = {
    NODE: process.execPath,
    MAIN: join(root, 'src/main.ts'),
    COUNTERSIGN_STORE: store,
    COUNTERSIGN_ADAPTERS: 'nimiq,ethereum',
    ADDRESS: wallet.address,
    KEY: wallet.publicKeyHex,
    USER_ID: session.userId,
    OTHER_USER_ID: other.userId,
    SESSION_ID: session.id,
    LOST_ADDRESS: lost.address,
    LOST_USER_ID: lostSession.userId,
    NEW_ADDRESS: replacement.address,
  }
  const [, users = ''] = /```json\n([\s\S]*?)```/.exec(page) ?? []
  await writeFile(join(folder, 'users.jsonl'), users)
  // It waits a minute; test/commands/copy.test.ts shows what it does.
  const shown = snippets.filter((snippet) => !snippet.startsWith('countersign admin copy '))
  const script = ['set -e', 'countersign() { "$NODE" "$MAIN" "$@"; }', ...shown].join('\n')
  const { stdout, stderr } = await run('sh', ['-c', script], { cwd: folder, env })
  expect(stderr).toBe('')
  expect(stdout).toMatch(/ended 1 session\nended 1 session\n[\s\S]*blocked[\s\S]*unblocked\n[\s\S]*moved from/)
  expect(stdout).toContain('1 wallet of 1 user, 1 of them new\n')
  expect(stdout).toContain(`deleted ${session.userId}\n`)
  // The person who lost their only wallet.
  expect((await signIn(replacement)).userId).toBe(lostSession.userId)
  expect((await verify(lost)).code).toBe('LOGIN_REFUSED')
  expect((await rest(url, '/session', undefined, { authorization: `Bearer ${lostToken}` })).status).toBe(401)
})
