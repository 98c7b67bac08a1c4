import { cp, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { root } from '../support/repository.ts'
import { rest } from '../support/rest.ts'
import { startService } from '../support/service.ts'
import { executedSnippets, runShell, workFolder } from '../support/snippets.ts'

const [signIn = '', approve = '', start = ''] = (await executedSnippets('docs/phones.md')).map(({ code }) => code)

/** A folder with the toy wallet, as in a clone. */
async function folderWithWallet(): Promise<string> {
  const folder = await workFolder()
  await cp(join(root, 'examples/curl'), join(folder, 'examples/curl'), { recursive: true })
  return folder
}

async function json(folder: string, file: string) {
  return JSON.parse(await readFile(join(folder, file), 'utf8'))
}

test('the commands of a sign-in end with a session, which the last one ends', async () => {
  const { url } = await startService()
  const folder = await folderWithWallet()
  const kept = signIn.replace('# 3.', 'echo "$token" > token.txt\n# 3.')
  const { stdout } = await runShell(kept, url, folder)
  expect(JSON.parse(stdout.slice(0, stdout.indexOf('}{') + 1))).toMatchObject({
    session: { adapterId: 'ed25519', userId: expect.stringMatching(/^usr_/) },
  })
  const authorization = `Bearer ${(await readFile(join(folder, 'token.txt'), 'utf8')).trim()}`
  expect((await rest(url, '/session', undefined, { authorization })).status).toBe(401)
})

test('the commands of the phone approve an order of another page, and end with the return code to show', async () => {
  const { url } = await startService({ confirmationCode: 'return' })
  const folder = await folderWithWallet()
  const { json: order } = await rest(url, '/cross-device/start', { kind: 'login' })
  await writeFile(join(folder, 'claim-url.txt'), `${order.claimUrl}\n`)
  await runShell(approve, url, folder)
  expect(await json(folder, 'preview.json')).toMatchObject({ kind: 'login', origin: url })
  expect(await json(folder, 'approved.json')).toMatchObject({
    status: 'approved',
    returnCode: expect.stringMatching(/^\d{6}$/),
    finishBy: expect.any(Number),
  })
})

test('the commands of the screen see each step of the other phone, and end with a session’s token', async () => {
  const { url } = await startService()
  const folder = await folderWithWallet()
  await writeFile(join(folder, 'approve.sh'), approve.replaceAll('http://localhost:8080', url))
  const { stdout } = await runShell(start, url, folder)
  expect(stdout).toMatch(/css_\S+\n$/)
  const statuses = [...stdout.matchAll(/"status":"(\w+)"/g)].map(([, status]) => status)
  expect(statuses).toEqual(['created', 'claimed', 'waiting_user', 'approved'])
})

test('a trusted web view gets a nonce, and neither the origin null nor another name of the server does', async () => {
  const { url } = await startService({ publicUrl: 'https://auth.example', trustedOrigins: ['capacitor://localhost'] })
  const nonce = async (headers: Record<string, string>) => (await rest(url, '/wallet/nonce', {}, headers)).json
  expect(await nonce({ origin: 'capacitor://localhost' })).toMatchObject({ origin: 'capacitor://localhost' })
  expect(await nonce({ origin: 'null' })).toMatchObject({ code: 'ORIGIN_NOT_TRUSTED' })
  expect(await nonce({})).toMatchObject({ code: 'ORIGIN_NOT_TRUSTED' })
})
