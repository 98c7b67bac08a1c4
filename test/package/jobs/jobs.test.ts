import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Page } from 'playwright-core'
import { describe, expect } from 'vitest'
import { returnCode } from '../../browser/approval-steps.ts'
import { signInOnDemo } from '../../browser/flows.ts'
import { hasBrowser, provokes, scan, useBrowser } from '../../browser/support.ts'
import { minuteMs } from '../../examples/tools.ts'
import { TestUser } from '../../integrations/approvals/support.ts'
import { signIn } from '../../oidc/applications.ts'
import { allowCode } from '../../oidc/devices.ts'
import { Browser, decide } from '../../oidc/support.ts'
import { Authority } from '../../support/certificates.ts'
import { run } from '../../support/command.ts'
import { DappWallet } from '../../support/dapp-wallet.ts'
import { runNginx } from '../../support/nginx.ts'
import { Application } from '../../support/protected-application.ts'
import { freePort } from '../../support/redis-server.ts'
import { readFromRoot } from '../../support/repository.ts'
import { rest } from '../../support/rest.ts'
import { makeWallet, proofOf, type TestWallet } from '../../support/wallet.ts'
import { codeOf, type Desk, edited, useJobs } from './job.ts'

const keyOf = ({ address }: TestWallet): string => `nimiq:${address}`

/** The people of docs/private-applications.md with wallets in place of theirs. */
async function peopleFor(...wallets: readonly TestWallet[]): Promise<string> {
  const [json = ''] = await codeOf('docs/private-applications.md', 'json')
  const people = Object.values(JSON.parse(json))
  return JSON.stringify(Object.fromEntries(wallets.map((wallet, index) => [keyOf(wallet), people[index] ?? {}])))
}

/**
 * What users come for, each in an empty folder, with the package from a registry of npm: what is typed is what the
 * documents say, but for names, addresses and ports.
 */
describe.skipIf(!hasBrowser)('with the package from a registry', () => {
  const browser = useBrowser()
  const job = useJobs()
  /** A job whose service is also the image's. */
  const serviceJob = (...[name, pages, work]: Parameters<typeof job>) => {
    job(name, pages, work)
    job(`${name}, from the image`, [...pages, 'docs/containers.md'], work, true)
  }

  serviceJob('one command shows a page on which a demo wallet signs in', ['README.md'], async (desk) => {
    const { url } = await desk.serve()
    const { page } = await browser.open()
    await page.goto(url)
    await signInOnDemo(page)
    return 'You’re signed in'
  })

  /** A new dapp with an example's files, its service, and a page of it in a browser that has a wallet. */
  const openDapp = async (desk: Desk, example: string, file: string, vendor: string) => {
    provokes(/net::ERR_FAILED/, /Analytics SDK|SWIXUtil/)
    await desk.install('countersign')
    const port = await freePort()
    const origin = `http://localhost:${port}`
    const [settings = ''] = await codeOf('docs/wagmi.md', 'sh')
    // There is no contract wallet here.
    const without = settings.replace(/^COUNTERSIGN_EVM_RPC=.*\n/m, '')
    const { url } = await desk.serve(without, { 'http://localhost:5173': origin })
    const shop = await desk.beside('tulip-shop')
    const lines = (await readFromRoot('docs/wagmi.md')).match(/(?<=`)npm install [^`]+/g) ?? []
    const install = lines.find((line) => line.includes(vendor))?.replace('\n', ' ')
    await shop.type(
      `npx --yes create-vite@latest . --template react-ts --no-interactive
      ${install}
      cp node_modules/countersign/examples/wagmi/${example}/*.tsx src`,
    )
    await shop.edit(`src/${file}`, { 'https://auth.example': url })
    await shop.type('npx vite build')
    await shop.start(`npx vite preview --port ${port} --strictPort`, /Local/)
    const { page } = await browser.open()
    page.setDefaultTimeout(minuteMs)
    const wallet = new DappWallet()
    await wallet.install(page.context())
    await page.context().route(
      ({ hostname }) => hostname !== 'localhost',
      (route) => route.abort(),
    )
    await page.goto(origin)
    return { page, wallet, url }
  }
  const signedIn = async (page: Page, { address }: DappWallet): Promise<string> => {
    await page.getByText(`Signed in as ${address}`).waitFor()
    return 'Signed in as 0x…'
  }

  job(
    'a dapp of RainbowKit signs in, and so its own back end knows who calls',
    ['docs/wagmi.md', 'docs/backends.md'],
    async (desk) => {
      const { page, wallet, url } = await openDapp(desk, 'rainbowkit', 'authentication.tsx', '@rainbow-me')
      await page.getByRole('button', { name: 'Connect Wallet' }).click()
      await page.getByRole('button', { name: 'Test Wallet' }).first().click()
      await page.getByTestId('rk-auth-message-button').click()
      await signedIn(page, wallet)

      const backend = await desk.beside('backend')
      await backend.install('countersign', 'express')
      const [verifier = '', guard = ''] = await codeOf('docs/backends.md', 'ts')
      const port = await freePort()
      const own = edited(verifier, { 'http://localhost:8080': url })
      const start = `app.listen(${port}, 'localhost', () => console.log('ready'))`
      await backend.write(
        'server.mjs',
        `import express from 'express'\nconst app = express()\n${own}${guard}${start}\n`,
      )
      await backend.start('node server.mjs', /ready/)
      // client.readStoredToken() reads it there.
      const token = await page.evaluate(() => localStorage.getItem('countersign.token'))
      const answer = await fetch(`http://localhost:${port}/me`, { headers: { authorization: `Bearer ${token}` } })
      expect(await answer.json()).toMatchObject({ address: wallet.address })
      return `200 {"address":"0x…"}`
    },
  )

  job('a dapp of AppKit signs in', ['docs/wagmi.md'], async (desk) => {
    const { page, wallet } = await openDapp(desk, 'appkit', 'main.tsx', '@reown')
    await page.locator('appkit-button').click()
    await page.getByText('Test Wallet', { exact: true }).first().click()
    await page.getByText('Sign', { exact: true }).first().click()
    return await signedIn(page, wallet)
  })

  serviceJob(
    'behind nginx, three named wallets see the application, and a fourth once it is in the file',
    ['docs/private-applications.md', 'docs/forward-auth.md', 'docs/proxies.md'],
    async (desk) => {
      const family = [makeWallet(), makeWallet(), makeWallet(), makeWallet()] as const
      await desk.installService()
      await desk.write('people.json', await peopleFor(...family.slice(0, 3)))
      const [settings = ''] = await codeOf('docs/private-applications.md', 'sh')
      const port = await freePort()
      const main = 'exec node --min-semi-space-size=16 node_modules/countersign/dist/src/main.js'
      // nginx serves the name of the documents.
      const name = 'https://auth.example'
      const own = { [name]: name, '/etc/countersign/people.json': desk.pathOf('people.json') }
      const { url, reload } = await desk.serve(settings, own, main)

      const authority = await Authority.create(desk.folder, 'authority')
      const address = { '127.0.0.1:8080': `127.0.0.1:${new URL(url).port}` }
      const application = new Application()
      const applicationPort = await application.listen()
      const configured = async (file: string, own: Readonly<Record<string, string>>): Promise<string> =>
        edited(await readFile(join(desk.sources, 'deploy/nginx', file), 'utf8'), own)
      const site = async (host: string) => {
        const { cert, key } = await authority.issue(host)
        const files = { [`/etc/ssl/${host}.crt`]: cert, [`/etc/ssl/${host}.key`]: key }
        return { ...files, 'listen 443 ssl': `listen 127.0.0.1:${port} ssl` }
      }
      const plainPort = await freePort()
      const one = { '  server 127.0.0.1:8081 max_fails=0;\n': '' }
      const parts = [
        await configured('countersign-shared.conf', { ...address, ...one }),
        await configured('countersign.conf', {
          ...(await site('auth.example')),
          ...address,
          ...one,
          'listen 80;': `listen 127.0.0.1:${plainPort};`,
        }),
        await configured('forward-auth.conf', {
          ...(await site('app.example')),
          '127.0.0.1:3000': `127.0.0.1:${applicationPort}`,
        }),
      ]
      await runNginx(plainPort, parts.join('\n'))

      /** What a browser does: its names lead to this nginx. Resolves with the answer's text and its status. */
      const curl = async (url: string, ...args: readonly string[]): Promise<readonly [string, string]> => {
        const trust = ['--cacert', authority.cert, '--connect-to', `::127.0.0.1:${port}`]
        const { stdout } = await run('curl', ['-sS', ...trust, '-w', '\n%{http_code}', ...args, url])
        return stdout.split(/\n(?=\d+$)/) as [string, string]
      }
      const json = (body: object) => ['-H', 'content-type: application/json', '-d', JSON.stringify(body)]
      const statusFor = async (wallet: TestWallet): Promise<string> => {
        const base = 'https://app.example/api/auth/wallet'
        const [challenge] = await curl(`${base}/nonce`, ...json({}))
        const jar = join(desk.folder, `cookies-${wallet.publicKeyHex}`)
        const [, status] = await curl(`${base}/verify`, '-c', jar, ...json(proofOf(wallet, JSON.parse(challenge))))
        return status === '200' ? (await curl('https://app.example/', '-b', jar))[1] : status
      }
      expect((await curl('https://app.example/', '-H', 'accept: text/html'))[1]).toBe('302')
      expect((await curl('https://auth.example/api/auth/sign-in'))[0]).toContain('Family wiki')
      const statuses = async () => await Promise.all(family.map(statusFor))
      expect(await statuses()).toEqual(['201', '201', '201', '403'])
      await desk.write('people.json', await peopleFor(...family))
      await reload()
      await expect.poll(() => statusFor(family[3]), { interval: 500, timeout: minuteMs }).toBe('201')
      return 'the application'
    },
  )

  serviceJob(
    'an application of the issuer learns both groups of a person, and is not open to one without',
    ['docs/oidc.md', 'docs/private-applications.md', 'docs/oidc-applications.md'],
    async (desk) => {
      const [ada, bob, cleo] = [makeWallet(), makeWallet(), makeWallet()]
      await desk.installService('oidc-provider@9.13.3')
      const secret = (await desk.type('openssl rand -hex 32')).trim()
      const [clients = ''] = await codeOf('docs/oidc.md', 'json')
      const port = await freePort()
      const app = `http://localhost:${port}`
      const file = JSON.parse(edited(clients, { 'openssl rand -hex 32': secret, 'https://shop.example': app }))
      file.clients[0].groups = ['staff']
      await desk.write('clients.json', file)
      await desk.write('people.json', await peopleFor(ada, bob, cleo))
      const [list, people] = [desk.pathOf('clients.json'), desk.pathOf('people.json')]
      const settings = [`OIDC_CLIENTS=${list}`, `PEOPLE=${people}`, 'PUBLIC_URL=https://auth.example']
      const { url } = await desk.serve(settings.map((line) => `COUNTERSIGN_${line}\n`).join(''))

      const shop = await desk.beside('shop')
      await shop.install('countersign', 'express', 'express-openid-connect@3.4.0')
      await shop.type('cp node_modules/countersign/examples/oidc/express-openid-connect.mjs server.mjs')
      const names = { ISSUER: url, CLIENT_ID: 'shop', CLIENT_SECRET: secret, APP_URL: app, APP_SECRET: secret }
      const set = { ...names, PORT: `${port}`, SCOPE: 'openid profile groups' }
      await shop.edit('server.mjs', { "'127.0.0.1')": "'127.0.0.1', () => console.log('ready'))" })
      await shop.start('node server.mjs', /ready/, set)
      const shownTo = async (wallet: TestWallet) => {
        const begin = async () => new URL(`${app}/login`)
        return await signIn(new Browser(app), new Browser(url), wallet, begin)
      }
      expect(JSON.parse((await shownTo(ada)).text)).toMatchObject({ groups: ['staff', 'admins'] })
      expect(JSON.parse((await shownTo(bob)).text)).toMatchObject({ groups: ['staff'] })
      expect((await shownTo(cleo)).address.searchParams.get('error')).toBe('access_denied')
      return '{"groups":["staff","admins"]}'
    },
  )

  job('a wallet on a phone becomes the second one of a user', ['docs/several-wallets.md'], async (desk) => {
    await desk.install('countersign')
    const { url } = await desk.serve()
    const account = `${url}/api/auth/sign-in?returnTo=/api/auth/account`
    const user = (page: Page) =>
      page.evaluate(async () => (await (await fetch('/api/auth/session')).json()).session.userId)
    const [{ page: computer }, { page: phone }] = [
      await browser.open(),
      await browser.open({ viewport: { width: 390, height: 844 } }),
    ]
    await computer.goto(account)
    await computer.getByRole('button', { name: 'Use a wallet on this device' }).click()
    await computer.getByRole('button', { name: 'Demo wallet' }).click()
    await computer.getByRole('button', { name: 'Add a wallet from another device' }).click()
    await phone.goto(await scan(computer.locator('countersign-sign-in').getByRole('img', { name: /QR/ })))
    await phone.getByRole('button', { name: 'Continue', exact: true }).click()
    await phone.getByRole('button', { name: 'Approve', exact: true }).click()
    await computer.getByLabel('Code on the other device').fill(await returnCode(phone))
    await phone.getByRole('heading', { name: 'Your wallet is added' }).waitFor()
    await computer.locator('#wallets [data-rows] > li').nth(1).waitFor()
    // "After adding it, have the user sign in with it once."
    await phone.goto(account)
    await phone.getByRole('button', { name: 'Use a wallet on this device' }).click()
    await phone.getByRole('button', { name: 'Demo wallet' }).click()
    await phone.locator('#wallets [data-rows] > li').nth(1).waitFor()
    expect(await user(phone)).toBe(await user(computer))
    return 'Your wallet is added'
  })

  serviceJob('a person who lost a wallet signs in with another as the same user', ['docs/admin.md'], async (desk) => {
    await desk.installService()
    const { url } = await desk.serve()
    const [lost, other] = [await TestUser.signIn(url), await TestUser.signIn(url)]
    const blocks = await codeOf('docs/admin.md', 'sh')
    const block = blocks.find((text) => text.includes('$LOST_ADDRESS')) ?? ''
    const known = { LOST_ADDRESS: lost.wallet.address, NEW_ADDRESS: other.wallet.address }
    const [find = '', ...others] = block.split('\n')
    const [userId = ''] = /usr_[\w-]+/.exec(await desk.administer(find, known)) ?? []
    await desk.administer(others.join('\n'), { ...known, LOST_USER_ID: userId })
    expect((await TestUser.signIn(url, other.wallet)).id).toBe(lost.id)
    await expect(TestUser.signIn(url, lost.wallet)).rejects.toThrow('LOGIN_REFUSED')
    expect((await rest(url, '/session', undefined, { authorization: `Bearer ${lost.token}` })).status).toBe(401)
    return `200 {"userId":"usr_…"}`
  })

  job('an MCP server sees whose call it is', ['docs/mcp.md'], async (desk) => {
    const port = await freePort()
    const own = { 'https://notes.example/mcp': `http://localhost:${port}/mcp` }
    await desk.install('countersign', 'oidc-provider@9.13.3')
    const remote = JSON.parse(await readFromRoot('examples/oidc/mcp/mcp-remote.json'))
    const [clients = ''] = await codeOf('docs/mcp.md', 'json')
    await desk.write('clients.json', { ...JSON.parse(edited(clients, own)), clients: [remote] })
    const { url } = await desk.serve((await codeOf('docs/mcp.md', 'sh'))[0])

    const notes = await desk.beside('notes')
    await notes.install('@modelcontextprotocol/sdk', 'countersign')
    const [guard = ''] = await codeOf('docs/mcp.md', 'js')
    await notes.write('guard.mjs', edited(guard, { 'https://auth.example': url, ...own }))
    await notes.type('cp node_modules/countersign/examples/oidc/mcp/server.mjs .')
    await notes.edit('server.mjs', { '3000': `${port}, () => console.log('ready')` })
    await notes.start('node server.mjs', /ready/)

    // The agent: what it writes to mcp-remote.
    const agent = await desk.beside('agent')
    const params = { protocolVersion: '2025-06-18', capabilities: {}, clientInfo: { name: 'agent', version: '1.0.0' } }
    const messages = [
      { id: 1, method: 'initialize', params },
      { method: 'notifications/initialized' },
      { id: 2, method: 'tools/call', params: { name: 'who' } },
    ].map((message) => `${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`)
    await agent.write('messages', messages.join(''))
    const page = await readFromRoot('docs/mcp.md')
    const [, option = ''] = /`(--static-oauth-client-info '\{[^`]*\}')`/.exec(page) ?? []
    const [, command = ''] = /`(npx -y mcp-remote [^`]*)`/.exec(page) ?? []
    // As "What was tested" has it.
    const [tested = ''] = /(?<=mcp-remote )\d+\.\d+\.\d+/.exec(page) ?? []
    const pinned = edited(command, { ...own, 'mcp-remote ': `mcp-remote@${tested} ` })
    const typed = `{ cat messages; sleep 600; } | ${pinned} ${option}`
    const opened = /https?:\S+\/authorize\?\S+/
    const remoteClient = await agent.start(typed, opened, { BROWSER: 'true', MCP_REMOTE_CONFIG_DIR: agent.folder })
    const person = new Browser(url)
    const { session } = await person.signIn()
    const [address = ''] = opened.exec(remoteClient.output()) ?? []
    await fetch(await decide(person, await person.open(address)))
    await expect.poll(remoteClient.output, { timeout: minuteMs }).toContain(`${session.userId} by mcp-remote`)
    return 'usr_… by mcp-remote'
  })

  job('a command of an agent runs once its user has signed it', ['docs/approvals.md'], async (desk) => {
    await desk.install('countersign')
    const [settings = ''] = await codeOf('docs/approvals.md', 'sh')
    const named = edited(settings, { 'https://sign.example': 'https://auth.example' })
    const { url } = await desk.serve(`${named}echo $START_KEY > start-key\n`)
    const user = await TestUser.signIn(url)
    const [, userId = ''] = /(usr_[\w-]+)/.exec(await desk.type('npx countersign admin list')) ?? []

    const agent = await desk.beside('agent')
    await agent.install('countersign')
    await agent.type(
      'npm pkg set type=module\ncp node_modules/countersign/examples/approvals/agents/{hook,approver}.ts .',
    )
    const key = (await readFile(join(desk.folder, 'start-key'), 'utf8')).trim()
    const names = { SIGN_URL: url, START_KEY: key, APP_NAME: 'Example', ORIGIN: 'https://app.example' }
    const who = { USER_ID: userId, ADAPTER_ID: 'nimiq', ADDRESS: user.wallet.address }
    await agent.write('call.json', { tool_name: 'Bash', tool_input: { command: 'rm -r archive' }, cwd: '/srv' })
    const hook = await agent.start('node hook.ts < call.json', /Approve at/, { ...names, ...who })
    expect(hook.output()).not.toContain('permissionDecision')
    await user.approve(/order=([\w-]+)/.exec(hook.output())?.[1] ?? '')
    await expect.poll(hook.output).toContain('"permissionDecision":"allow"')
    return 'Signed by NQ…'
  })

  job('a program in a terminal learns who signed in', ['docs/terminals.md', 'docs/oidc.md'], async (desk) => {
    await desk.install('countersign', 'oidc-provider@9.13.3')
    const [clients = ''] = await codeOf('docs/terminals.md', 'json')
    await desk.write('clients.json', clients)
    const settings = ['OIDC_CLIENTS=clients.json', 'PUBLIC_URL=https://auth.example', 'OIDC_DEVICE=on']
    const { url } = await desk.serve(settings.map((line) => `COUNTERSIGN_${line}\n`).join(''))
    const program = 'cp node_modules/countersign/examples/oidc/terminals/sign-in.sh .\nsh sign-in.sh'
    const terminal = await desk.start(program, /and type (\S+)\n/, { ISSUER: url })
    const [, code = ''] = /and type (\S+)/.exec(terminal.output()) ?? []
    const { session } = await allowCode(url, code)
    await expect.poll(terminal.output, { timeout: minuteMs }).toContain(`"sub":"${session.userId}"`)
    return '{"sub":"usr_…"}'
  })
})
