import { spawn } from 'node:child_process'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { makeTestWallet } from '../../src/integrations/testing/index.ts'
import { freePort } from '../support/redis-server.ts'
import { readFromRoot, root } from '../support/repository.ts'
import { workFolder } from '../support/snippets.ts'

const page = await readFromRoot('docs/headless.md')
const reasons = [...page.matchAll(/^- (`[A-Z_`, ]+`): /gm)].flatMap(
  ([, names = '']) => names.match(/[A-Z_]{3,}/g) ?? [],
)

test("the page's server signs a wallet in once, in the browser that began, from its own origin", async () => {
  const port = await freePort()
  const origin = `http://localhost:${port}`
  const code = (await readFromRoot('examples/headless/server.ts')).replaceAll('3000', String(port))
  const file = join(await workFolder(), 'server.ts')
  await writeFile(file, code.replace('../../src', join(root, 'src')))
  const child = spawn(process.execPath, [file], { stdio: ['ignore', 'ignore', 'inherit'] })
  onTestFinished(() => void child.kill())
  await expect
    .poll(
      () =>
        fetch(`${origin}/`).then(
          () => true,
          () => false,
        ),
      { timeout: 10_000 },
    )
    .toBe(true)

  const wallet = makeTestWallet()
  const begin = async () => {
    const response = await fetch(`${origin}/challenge`)
    const cookie = response.headers.get('set-cookie')?.split(';')[0] ?? ''
    const signatureHex = wallet.sign(await response.text())
    return { cookie, body: JSON.stringify({ publicKeyHex: wallet.publicKeyHex, signatureHex }) }
  }
  const finish = async (cookie: string, body: string, from = origin) => {
    const response = await fetch(origin, { method: 'POST', headers: { cookie, origin: from }, body })
    return `${response.status} ${await response.text()}`
  }
  const [first, second, third] = [await begin(), await begin(), await begin()]
  expect(await finish(first.cookie, first.body)).toBe(`200 Signed in as ${wallet.address}`)
  expect(await finish(first.cookie, first.body)).toBe('401 Begin again')
  expect(await finish('', second.body)).toBe('401 Begin again')
  expect(await finish(second.cookie, first.body)).toBe('401 SIGNATURE_INVALID')
  expect(await finish(third.cookie, third.body, 'https://evil.example')).toBe('401 ORIGIN_MISMATCH')
})

test('every reason that the page names is one of the protocol', async () => {
  const proto = await readFromRoot('proto/countersign/v1/error_reason.proto')
  expect(reasons.length).toBeGreaterThan(6)
  for (const reason of reasons) expect(proto).toMatch(new RegExp(`ERROR_REASON_${reason} = `))
})
