import { cp } from 'node:fs/promises'
import { delimiter, dirname, join } from 'node:path'
import { expect, test } from 'vitest'
import {
  bundleClient,
  type ClientBundle,
  clientEntries,
  connectClient,
  connectFloor,
  plainClient,
  siweClient,
  sizeOf,
} from '../../scripts/build-client.ts'
import { run } from '../support/command.ts'
import { readFromRoot, root } from '../support/repository.ts'
import { startService } from '../support/service.ts'
import { executedSnippets, runTypeScript, type Snippet, workFolder } from '../support/snippets.ts'

const readme = await readFromRoot('README.md')

const snippets = await executedSnippets('README.md')
const [curl, element, client] = snippets as [Snippet, Snippet, Snippet]

test('there are three', () => expect(snippets.map(({ language }) => language)).toEqual(['sh', 'html', 'ts']))

test('the page is short, and its first screen says for whom it is, which wallets, standards and stacks it has, and its status', () => {
  expect(readme.split('\n').length).toBeLessThanOrEqual(121)
  const [screen = ''] = readme.split('## Start')
  const terms = ['Ethereum', 'EIP-4361', 'Solana', 'Nimiq', 'OpenID Connect', 'gRPC', 'REST', 'Docker', 'not audited']
  const stacks = ['RainbowKit', 'wagmi', 'siwe', 'Next.js', 'MCP', 'Compose', 'command lines']
  for (const term of [...terms, ...stacks]) expect(screen).toContain(term)
})

test('the curl snippet signs in', async () => {
  const { url } = await startService()
  const folder = await workFolder()
  await cp(join(root, 'examples/curl'), join(folder, 'examples/curl'), { recursive: true })
  const { stdout } = await run('bash', ['-euc', curl.code.replaceAll('http://localhost:8080', url)], {
    cwd: folder,
    env: { ...process.env, PATH: `${dirname(process.execPath)}${delimiter}${process.env.PATH}` },
  })
  expect(JSON.parse(stdout)).toMatchObject({ session: { adapterId: 'ed25519', current: true } })
})

test('the client snippet signs in with the wallet that a page of Nimiq Pay finds, and by an order', async () => {
  const { url } = await startService()
  // The provider's answers, as its documentation has them, signed by Nimiq's own library.
  const provider = `
    import { makeWallet } from ${JSON.stringify(join(root, 'test/support/wallet.ts'))}
    const wallet = makeWallet()
    globalThis.window = globalThis
    globalThis.nimiq = {
      listAccounts: async () => [wallet.address],
      sign: async (message) => ({ publicKey: wallet.publicKeyHex, signature: wallet.sign(message) }),
    }`
  const { stdout } = await runTypeScript(provider + havePhoneApprove + client.code, url)
  const [signedIn, ...lines] = stdout.split('\n')
  expect(signedIn).toMatch(/^Signed in as NQ\d\d( [0-9A-Z]{4}){8}$/)
  expect(lines.join('\n')).toMatch(
    /^Scan \S+ and compare the code \d\d\n(created\n)?(claimed\n)?(waiting_user\n)?approved\nGo to \/\nfinalized\n$/,
  )
})

test('the element is on the page of docs/start.md to the letter, which test/newcomer opens in a browser', async () => {
  const start = await readFromRoot('docs/start.md')
  const lines = element.code.trim().split('\n')
  expect(lines).toHaveLength(2)
  for (const line of lines) expect(start).toContain(`  ${line}\n`)
})

test('the sizes of the client are those of the bundles', async () => {
  const sizeOfBundle = async (source: ClientBundle['source']): Promise<number> =>
    sizeOf((await bundleClient(source)).code).gzip
  const [client, withElement] = await Promise.all(clientEntries.map(({ source }) => sizeOfBundle(source)))
  const { onDemand } = await bundleClient(clientEntries[1]!.source)
  const wallets = sizeOf([...onDemand].find(([name]) => name.includes('device-sign-in'))![1].code).gzip
  const signIn =
    "import { signInWithWallet } from './src/browser/client/index.ts'; globalThis.signIn = signInWithWallet"
  const signInAlone = await sizeOfBundle({ stdin: { contents: signIn, resolveDir: root, loader: 'ts' } })
  const floor = await sizeOfBundle(connectFloor.source)
  const adapters = (await sizeOfBundle(siweClient.source)) - (await sizeOfBundle(plainClient.source))
  const measured = [
    client!,
    signInAlone,
    adapters,
    await sizeOfBundle(connectClient.source),
    floor,
    withElement!,
    wallets,
  ]
  const [table = ''] = /^\| import \|[\s\S]*?\n\n/m.exec(await readFromRoot('docs/client.md')) ?? []
  const written = [...table.matchAll(/([\d.]+) KB/g)].map(([, size]) => Number(size))
  expect(written).toHaveLength(measured.length)
  // Versions of Node.js compress differently by some bytes.
  for (const [place, bytes] of measured.entries()) expect(Math.abs(bytes / 1000 - written[place]!)).toBeLessThan(0.15)
})

/** Has a phone approve the order as soon as its claim URL is printed. */
const havePhoneApprove = `
  import { phone } from ${JSON.stringify(join(root, 'test/docs/phone.ts'))}
  const log = console.log
  console.log = (text) => {
    log(text)
    const claimUrl = /^Scan (\\S+)/.exec(text)?.[1]
    if (claimUrl !== undefined) void phone(claimUrl)
  }
`
