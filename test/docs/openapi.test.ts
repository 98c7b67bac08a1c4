import { expect, test } from 'vitest'
import { run } from '../support/command.ts'
import { GeneratedProject } from '../support/generated-client.ts'
import { readFromRoot } from '../support/repository.ts'
import { startService } from '../support/service.ts'

test('the client that docs/other-languages.md generates signs in, and is told with a type why it is refused', async () => {
  const { url } = await startService()
  const project = await GeneratedProject.make(url)
  const code = await readFromRoot('examples/openapi/sign-in.ts')
  const file = await project.copy('examples/openapi/sign-in.ts')
  const orders = await project.copy('examples/openapi/orders.ts')
  await project.check('sign-in.ts', 'orders.ts')
  // The types are not loose: each of these is a mistake that they find.
  const mistakes: readonly (readonly [right: string, wrong: string])[] = [
    ["=== 'NONCE_NOT_FOUND'", "=== 'NONCE_NOT_THERE'"],
    ['publicKeyHex, signatureHex', 'publicKeyHex, signature'],
    ['session.address', 'session.adress'],
    ['/wallet/nonce', '/wallet/nonces'],
  ]
  await Promise.all(
    mistakes.map(async ([right, wrong], number) => {
      expect(code).toContain(right)
      await project.add(`wrong-${number}.ts`, code.replace(right, wrong))
    }),
  )
  const found = await project.check(...mistakes.map((_, number) => `wrong-${number}.ts`)).catch(String)
  for (const number of mistakes.keys()) expect(found).toContain(`wrong-${number}.ts`)

  const signIn = await run(process.execPath, [file, url], { cwd: project.folder })
  expect(signIn.stdout).toMatch(/^signed in as NQ\d\d( [0-9A-Z]{4}){8}\nrefused: NONCE_NOT_FOUND\n$/)
  const { stdout } = await run(process.execPath, [orders, url], { cwd: project.folder })
  expect(stdout.split('\n')).toEqual([
    'Sign in: approved',
    expect.stringMatching(/^signed in as NQ\d\d .+, go to \/$/),
    'Order 7: approved',
    'signed: {"order":7,"total":"12.50"}',
    '',
  ])
})
