import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { copyFile, mkdir, mkdtemp, readFile, symlink, writeFile } from 'node:fs/promises'
import { type AddressInfo, createServer } from 'node:net'
import { dirname, join } from 'node:path'
import { beforeAll, describe, expect, test } from 'vitest'
import { packPackage } from '../../scripts/pack.ts'
import { approvedHeading, reviewOnPhone } from '../browser/flows.ts'
import { hasBrowser, provokes, useBrowser } from '../browser/support.ts'
import { blocksOf } from '../docs/blocks.ts'
import { run } from '../support/command.ts'
import { hasPart } from '../support/optional.ts'
import { pageValues } from '../support/page-values.ts'
import { readFromRoot, root } from '../support/repository.ts'
import { rest } from '../support/rest.ts'
import { folderOfFile } from '../support/temporary-folder.ts'
import { makeWallet, proofOf } from '../support/wallet.ts'
import { Terminal } from './terminal.ts'

/**
 * What somebody does who has never seen this project: follows README.md in a fresh clone, and docs/start.md in an empty folder,
 * and types what they say. Both are those of the last commit. The package that they install is the working tree's. The clone
 * has the packages that `npm ci` has installed here: .ci/prepare runs it in a fresh tree, and so does the build of the image.
 * It takes the ports that the pages name, or others if those are taken.
 */

const limitMs = 600_000
/** Whether there is a commit to clone, and a place to install packages from. */
const canStart = existsSync(join(root, '.git')) && hasPart('npm registry')

let folder = ''
let clone = ''
/** The ports that the pages name, and those that are used here. */
const ports = new Map<number, number>()

beforeAll(async () => {
  folder = folderOfFile()
  clone = join(folder, 'clone')
  if (canStart) await run('git', ['clone', '--quiet', root, clone])
  for (const port of [8080, 3000]) ports.set(port, (await listenOnce(port)) ?? (await listenOnce(0)) ?? 0)
})

/** The port, or the one that the system chose for 0, if it is free; `undefined` if it is taken. */
async function listenOnce(port: number): Promise<number | undefined> {
  const server = createServer().listen(port, 'localhost')
  try {
    await once(server, 'listening')
  } catch {
    return undefined
  }
  const { port: free } = server.address() as AddressInfo
  server.close()
  await once(server, 'close')
  return free
}

/** A page of the clone, with the ports that are used here. */
async function readPage(path: string): Promise<string> {
  let page = await readFile(join(clone, path), 'utf8')
  for (const [named, used] of ports) page = page.replaceAll(new RegExp(`\\b${named}\\b`, 'g'), String(used))
  return page
}

test.skipIf(!canStart)(
  'in a fresh clone, the commands of README.md start the service and sign in',
  async () => {
    const readme = await readPage('README.md')
    const port = ports.get(8080)
    const commands = blocksOf(readme).filter(({ language }) => language === 'sh')
    const start = commands.find(({ text }) => text.includes('npm start'))?.text
    const signIn = commands.find(({ text }) => text.includes('curl'))?.text
    expect(start).toBe('npm ci && npm start\n')
    await symlink(join(root, 'node_modules'), join(clone, 'node_modules'))
    const shell = new Terminal(clone)
    // The service has its port from the variable, because the command does not name it.
    const service = await shell.start(`export PORT=${port}\nnpm start`, /\bready\b.*"port":/)

    expect(readme).toContain(`open http://localhost:${port}`)
    expect(await (await fetch(`http://localhost:${port}`)).text()).toContain('Sign in with a wallet')
    expect(JSON.parse(await shell.type(signIn!))).toMatchObject({ session: { adapterId: 'ed25519', current: true } })
    await service.interrupt()
    expect(service.output()).toContain('"text":"stopped"')
  },
  limitMs,
)

describe.skipIf(!hasBrowser || !canStart)('in an empty folder', () => {
  const browser = useBrowser()

  test(
    'docs/start.md leads to an application that people sign in to, on this computer and with a phone',
    async () => {
      // The application's own answer to who is signed out, and its restarts.
      provokes(/401 .*\/me$/, /net::ERR/)
      const page = await readPage('docs/start.md')
      const port = ports.get(3000)
      const blocks = blocksOf(page)
      /** Takes the next block of the page, so that none is left out. */
      const next = (language: string, start: string): string => {
        const block = blocks.shift()
        expect(block?.language).toBe(language)
        expect(block?.text).toContain(start)
        return block?.text ?? ''
      }

      // 1. An empty project. Its Node is the one that runs this test: the package brings none.
      const empty = await mkdtemp(join(folder, 'empty-'))
      expect(next('sh', 'npm ci').trim()).toBe('npm ci\nnpm run package')
      // What these two write, of the working tree.
      const { version } = JSON.parse(await readFromRoot('package.json'))
      await mkdir(join(empty, 'countersign'))
      await copyFile(await packPackage(), join(empty, 'countersign', `countersign-${version}.tgz`))
      const install = next('sh', 'npm install ../countersign/')
      await new Terminal(empty, dirname(process.execPath)).type(install)
      const project = join(empty, 'tulip-shop')
      const shell = new Terminal(project, dirname(process.execPath))

      // 2. A server and a page.
      const program = next('js', '// server.mjs\n')
      await writeFile(join(project, 'server.mjs'), program)
      await mkdir(join(project, 'public'))
      await writeFile(join(project, 'public/index.html'), next('html', '<!-- public/index.html -->\n'))

      // 3. Sign in.
      const start = next('sh', 'node server.mjs')
      let server = await shell.start(start, /Listening at/)
      const { page: desktop, trail } = await browser.open()
      await desktop.goto(`http://localhost:${port}`)
      const code = desktop.getByRole('img', { name: /QR code/ })
      await code.waitFor()
      expect((await fetch(`http://localhost:${port}/me`)).status).toBe(401)
      await desktop.getByRole('button', { name: 'Use a wallet on this device' }).click()
      await desktop.getByRole('button', { name: 'Demo wallet' }).click()
      const signedIn = desktop.getByText(/^Signed in as NQ\d\d( [0-9A-Z]{4}){8}$/)
      await signedIn.waitFor()
      const before = trail.requests.length
      await desktop.reload()
      await signedIn.waitFor()
      // Whoever is signed in starts no order by looking at the page.
      expect(trail.requests.slice(before).filter(({ url }) => url.includes('/cross-device/'))).toEqual([])
      const me = await desktop.evaluate(async () => await (await fetch('/me')).json())
      expect(Object.keys(me)).toEqual(Object.keys(JSON.parse(next('json', '"userId"'))))
      await desktop.getByRole('button', { name: 'Sign out' }).click()
      await code.waitFor()
      // Its order is of this address, and the next server has another.
      await desktop.goto('about:blank')
      await server.interrupt()

      // 4. Sign in with a phone. The address is this machine's own; it would have a demo wallet without being told to.
      expect(program).toContain('demoWallet: true')
      server = await shell.start(next('sh', 'HOST=').replace('192.168.1.23', '127.0.0.1'), /Listening at/)
      const [, address = ''] = /Listening at (\S+)/.exec(server.output()) ?? []
      expect(address).toBe(`http://127.0.0.1:${port}`)
      await desktop.goto(address)
      await code.waitFor()
      const { page: phone, trail: phoneTrail } = await browser.open({ viewport: { width: 390, height: 664 } })
      await reviewOnPhone(phone, code)
      const digits = await desktop.locator('countersign-sign-in [part=code] > [aria-hidden]').textContent()
      expect(digits).toMatch(/^\d\d$/)
      expect(await phone.locator('#code > [aria-hidden]').textContent()).toBe(digits)
      await phone.getByRole('button', { name: 'Approve' }).click()
      await phone.getByRole('heading', { name: approvedHeading }).waitFor()
      await signedIn.waitFor()
      expect([...trail.faults, ...phoneTrail.faults]).toEqual([])
      await server.interrupt()

      // 5. For real users: asked as a proxy in front asks.
      const [service = ''] = /^const countersign = [\s\S]*?^const verifier = .*\n/m.exec(program) ?? []
      expect(service).toContain('demoWallet')
      await writeFile(join(project, 'server.mjs'), program.replace(service, next('js', 'shop.example')))
      server = await shell.start(start, /Listening at/)
      const local = `http://localhost:${port}`
      const proxied = {
        'x-forwarded-proto': 'https',
        'x-forwarded-host': 'shop.example',
        'x-forwarded-for': '203.0.113.7',
      }
      const { json: challenge } = await rest(local, '/wallet/nonce', {}, proxied)
      expect(challenge.origin).toBe('https://shop.example')
      const { headers } = await rest(local, '/wallet/verify', proofOf(makeWallet(), challenge), proxied)
      const [cookie = ''] = headers.getSetCookie()
      expect(cookie).toMatch(/^__Host-countersign_session=.*; Secure/)
      const [session = ''] = cookie.split(';')
      expect((await fetch(`${local}/me`, { headers: { ...proxied, cookie: session } })).status).toBe(200)
      const signInPage = await (await fetch(`${local}/api/auth/sign-in`, { headers: proxied })).text()
      expect(pageValues(signInPage).demoWallet).toBe(false)
      const { json: order } = await rest(local, '/cross-device/start', { kind: 'login' }, proxied)
      expect(order).toMatchObject({ claimUrl: expect.stringMatching(/^https:\/\/shop\.example\//) })
      expect(order.confirmationCode ?? '').toBe('')
      expect(existsSync(join(project, 'tulip-shop.db'))).toBe(true)
      await server.interrupt()
      // Nothing on the page is left.
      expect(blocks).toEqual([])
    },
    limitMs,
  )
})
