import * as client from 'openid-client'
import { vi } from 'vitest'
import type { CountersignOptions } from '../../src/service/config.ts'
import { inMemory } from '../support/ordinary-store.ts'
import { makeWallet, type TestWallet } from '../support/wallet.ts'
import { Browser, clientsFile, contentOf, pass, postForm, startIssuer } from './support.ts'

export const deviceGrant = 'urn:ietf:params:oauth:grant-type:device_code'

/** A command of a terminal: a public client without a redirect URI. */
export const terminal = {
  metadata: {
    client_id: 'tulip-cli',
    client_name: 'Tulip CLI',
    token_endpoint_auth_method: 'none',
    redirect_uris: [],
    grant_types: [deviceGrant, 'refresh_token'],
  },
}

/** An issuer for devices. */
export async function startDevices(options: CountersignOptions = {}, clients: readonly object[] = [terminal]) {
  const oidc = { device: true, clients: clientsFile(...clients), ...options.oidc }
  // In memory its clock is the one that `pass` sets.
  return await startIssuer(clients, { ...inMemory, ...options, oidc })
}

/** The client of a terminal. */
export async function discoverDevice(url: string, id = 'tulip-cli'): Promise<client.Configuration> {
  const execute = [client.allowInsecureRequests]
  return await client.discovery(new URL(url), id, undefined, client.None(), { execute })
}

/** Asks for a code. */
export async function askCode(url: string, form: Record<string, string> = {}, headers = {}) {
  const asked = { client_id: 'tulip-cli', scope: 'openid profile', ...form }
  const { status, json } = await postForm(url, 'device/auth', asked, headers)
  if (status !== 200) throw new Error(JSON.stringify(json))
  return { userCode: json.user_code as string, deviceCode: json.device_code as string }
}

/** Polls for the tokens of a code. */
export async function poll(url: string, deviceCode: string, clientId = 'tulip-cli') {
  const form = { grant_type: deviceGrant, device_code: deviceCode, client_id: clientId }
  return await postForm(url, 'token', form)
}

/** How a poll is refused. */
export async function pollError(url: string, deviceCode: string, clientId?: string): Promise<unknown> {
  return (await poll(url, deviceCode, clientId)).json.error
}

/** Types a code on the page. */
export async function typeCode(browser: Browser, code: string) {
  const answer = await browser.post('/device', { code })
  // Time stands still after `pass`, and a sign-in has to be later.
  if (vi.isFakeTimers()) pass(1)
  return answer
}

/** What the page shows after the sign-in. */
export async function afterSignIn(browser: Browser): Promise<ShownPage> {
  const { text, response, address } = await browser.open('/device?back=1')
  return { ...contentOf(text), status: response.status, path: address.pathname }
}

/** What the page shows, and where it is. */
interface ShownPage extends Readonly<Record<string, unknown>> {
  readonly kind?: string
  readonly status: number
  readonly path: string
}

/** Answers the page. */
export async function answerDevice(browser: Browser, shown: Readonly<Record<string, unknown>>, allow = true) {
  const { sessionId, scopes, device } = shown
  const { code } = device as { code: string }
  return await browser.post('/device', { allow, sessionId, scopes, code })
}

/** A person with a browser that has typed a code and signed in, and what it shows then. */
export async function typeAndSignIn(url: string, code: string, wallet = makeWallet()) {
  const browser = new Browser(url)
  await typeCode(browser, code)
  const signedIn = await browser.signIn(wallet)
  return { browser, ...signedIn, shown: await afterSignIn(browser) }
}

/** Such a person, who has allowed what the code asks for. */
export async function allowCode(url: string, code: string, wallet?: TestWallet) {
  const person = await typeAndSignIn(url, code, wallet)
  const { status, json } = await answerDevice(person.browser, person.shown)
  if (status !== 200) throw new Error(JSON.stringify(json))
  return person
}
