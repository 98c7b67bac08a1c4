import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { cpSync, existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, expect, onTestFinished } from 'vitest'
import type { CountersignOptions } from '../../src/service/config.ts'
import { run } from '../support/command.ts'
import { type Navigation, navigate } from '../support/navigate.ts'
import { freePort } from '../support/redis-server.ts'
import { startService } from '../support/service.ts'
import type { TrustedAuthority } from '../support/tls.ts'
import type { TestWallet } from '../support/wallet.ts'
import { Browser, clientsFile, contentOf, decide, fileWith } from './support.ts'

export const minuteMs = 60_000

/** Where browsers find the application of a test. */
export const appUrl = 'https://app.example'
/** What the application and the issuer share. */
export const clientSecret = 'secret-of-the-application-and-the-issuer'

/** The folder with the programs of the applications. */
export const programs = fileURLToPath(new URL('../../examples/oidc', import.meta.url))

/** A folder with programs and packages, for the Node that this runs on. It is removed after the tests of the file. */
export async function folderWith(packages: readonly string[], from?: string): Promise<string> {
  const folder = mkdtempSync(join(tmpdir(), 'countersign-applications-'))
  afterAll(() => rmSync(folder, { recursive: true, force: true }))
  if (from !== undefined) cpSync(from, folder, { recursive: true })
  const prefix = dirname(dirname(process.execPath))
  // Where a package has to be compiled: the headers beside this Node, if they are there.
  const headers = existsSync(join(prefix, 'include/node')) ? { npm_config_nodedir: prefix } : {}
  const path = `${dirname(process.execPath)}:${process.env.PATH}`
  writeFileSync(join(folder, 'package.json'), '{"private":true,"type":"module"}')
  await run('npm', ['install', '--no-audit', '--no-fund', '--loglevel=error', ...packages], {
    cwd: folder,
    env: { ...process.env, ...headers, PATH: path },
    timeout: 15 * minuteMs,
  })
  return folder
}

/** Starts an issuer over TLS. Resolves with its address. */
export async function startIssuer(
  authority: TrustedAuthority,
  options: CountersignOptions,
  ...clients: readonly object[]
): Promise<string> {
  const tls = await authority.issue('localhost')
  const port = await freePort()
  const publicUrl = `https://localhost:${port}`
  await startService({ publicUrl, port, tls, ...options, oidc: { ...options.oidc, clients: clientsFile(...clients) } })
  return publicUrl
}

/** A people file with what it has of each wallet. */
export function peopleFile(...people: readonly (readonly [TestWallet, object])[]): string {
  return fileWith(Object.fromEntries(people.map(([{ address }, person]) => [`nimiq:${address}`, person])))
}

/** A browser of an application, through what ends TLS in front of it. */
export class AppBrowser extends Browser {
  readonly #port: number

  constructor(port: number) {
    super(appUrl)
    this.#port = port
  }

  protected override async send(
    { host, pathname, search }: URL,
    { headers, ...others }: Navigation,
  ): Promise<Response> {
    const forwarded = { host, 'x-forwarded-host': host, 'x-forwarded-proto': 'https' }
    const address = `http://127.0.0.1:${this.#port}${pathname}${search}`
    return await navigate(address, { ...others, headers: { ...headers, ...forwarded } })
  }
}

/** Posts JSON, or a form, as a page of the application would. */
export async function post(browser: Browser, path: string, body: object | URLSearchParams): Promise<Response> {
  const isForm = body instanceof URLSearchParams
  const headers = { origin: browser.url, ...(isForm ? {} : { 'content-type': 'application/json' }) }
  return await browser.fetch(path, { method: 'POST', headers, body: isForm ? body : JSON.stringify(body) })
}

/** How an application is started. `folder` has its packages; it runs in an empty one there. */
export interface Program {
  readonly command: (port: number) => readonly [string, ...string[]]
  readonly folder: string
  readonly authority: TrustedAuthority
  readonly environment: Readonly<Record<string, string>>
}

/**
 * Starts the program of an application, which is stopped when the test ends. Resolves with its port, once its first
 * page is there.
 */
export async function startProgram({ command, folder, authority, environment }: Program): Promise<number> {
  const port = await freePort()
  const [program, ...args] = command(port)
  const child = spawn(program, args, {
    cwd: mkdtempSync(join(folder, 'run-')),
    env: {
      ...process.env,
      NODE_EXTRA_CA_CERTS: authority.cert,
      REQUESTS_CA_BUNDLE: authority.cert,
      SSL_CERT_FILE: authority.cert,
      APP_URL: appUrl,
      APP_SECRET: 'secret-of-the-application-alone-long-enough',
      CLIENT_SECRET: clientSecret,
      PORT: `${port}`,
      ...environment,
    },
    stdio: ['ignore', 'ignore', 'inherit'],
  })
  const exited = once(child, 'exit')
  onTestFinished(async () => {
    child.kill('SIGKILL')
    await exited
  })
  const home = () =>
    new AppBrowser(port).fetch('/').then(
      ({ status }) => status,
      () => undefined,
    )
  await expect.poll(home, { timeout: minuteMs }).toBe(200)
  return port
}

/**
 * Plays the browser of a user from an application to the issuer and back, signing the wallet in where the issuer asks,
 * and going back where the account may not use the application. Resolves with what the application asked for, with how
 * often there was a page of consent, and with what the application showed at the end.
 */
export async function signIn(app: Browser, issuer: Browser, wallet: TestWallet, begin: (app: Browser) => Promise<URL>) {
  let consents = 0
  const request = await begin(app)
  let address = request
  for (let step = 0; step < 10; step++) {
    const browser = address.origin === issuer.url ? issuer : app
    const opened = await browser.open(address.href)
    const returnTo = opened.address.searchParams.get('returnTo')
    const { kind, sessionId } = contentOf(opened.text)
    if (opened.address.origin !== browser.url) {
      address = opened.address
    } else if (browser === app) {
      return { request, consents, ...opened }
    } else if (kind === 'consent') {
      consents++
      address = await decide(issuer, opened)
    } else if (kind === 'not-for-account') {
      const { json } = await issuer.post(opened.address.pathname, { allow: false, sessionId })
      address = (await issuer.open(json.redirectTo)).address
    } else if (opened.address.pathname === '/api/auth/sign-in' && returnTo !== null) {
      await issuer.signIn(wallet)
      address = new URL(returnTo, issuer.url)
    } else {
      throw new Error(`${opened.response.status} at ${opened.address}: ${opened.text.slice(0, 500)}`)
    }
  }
  throw new Error(`no end in ten steps, ${consents} times consent`)
}

/** What an application's request asks for. */
export function askedIn({ searchParams }: URL): { readonly scope: string | null; readonly hasPkce: boolean } {
  return { scope: searchParams.get('scope'), hasPkce: searchParams.has('code_challenge') }
}
