import { type ChildProcess, spawn } from 'node:child_process'
import { createInterface } from 'node:readline'
import type { Readable } from 'node:stream'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { shortAddress } from '../../src/shared/wallet-address.ts'
import { hasPart } from '../support/optional.ts'
import { freePort } from '../support/redis-server.ts'
import { startService } from '../support/service.ts'
import { makeWallet } from '../support/wallet.ts'
import { phoneClient } from './client/phone.ts'
import { Desktop } from './desktop.ts'
import { readQr } from './support.ts'

/** WebKitGTK on a display of its own, over WebDriver (W3C), which playwright does not speak to it. */
class WebKit {
  readonly #processes: ChildProcess[] = []
  #url = ''
  #session = ''

  async launch(): Promise<void> {
    const screen = ['-displayfd', '1', '-screen', '0', '1280x1600x24', '-nolisten', 'tcp']
    const display = spawn('Xvfb', screen, { stdio: ['ignore', 'pipe', 'ignore'] })
    this.#processes.push(display)
    const number = await firstLine(display.stdout)
    const port = await freePort()
    const driver = spawn('WebKitWebDriver', [`--port=${port}`, '--host=127.0.0.1'], {
      env: { ...process.env, DISPLAY: `:${number}`, LIBGL_ALWAYS_SOFTWARE: '1' },
      stdio: 'ignore',
    })
    this.#processes.push(driver)
    this.#url = `http://127.0.0.1:${port}`
    await vi.waitFor(() => fetch(`${this.#url}/status`), 10_000)
    const { sessionId } = await this.#call<{ sessionId: string }>('POST', '/session', { capabilities: {} })
    this.#session = `/session/${sessionId}`
  }

  async close(): Promise<void> {
    await this.#call('DELETE', this.#session).catch(() => {})
    for (const one of this.#processes) one.kill()
  }

  async open(url: string): Promise<void> {
    await this.#call('POST', `${this.#session}/url`, { url })
  }

  /** Clicks a button by its name, once it is visible. */
  async click(name: string): Promise<void> {
    const find = { using: 'xpath', value: `//button[normalize-space()="${name}"]` }
    await expect
      .poll(async () => {
        for (const element of await this.#call<object[]>('POST', `${this.#session}/elements`, find)) {
          const path = `${this.#session}/element/${Object.values(element)[0]}`
          if (await this.#call('GET', `${path}/displayed`)) {
            await this.#call('POST', `${path}/click`, {})
            return true
          }
        }
        return false
      })
      .toBe(true)
  }

  /** Waits for a text that is visible. */
  async see(text: string | RegExp): Promise<void> {
    await expect.poll(() => this.#run('return document.body.innerText')).toMatch(text)
  }

  /** Reads the QR code that the window shows, as a phone's camera does. */
  async scan(): Promise<string> {
    let found: string | undefined
    await expect
      .poll(async () => {
        found = readQr(Buffer.from(await this.#call<string>('GET', `${this.#session}/screenshot`), 'base64'))
        return found
      })
      .toBeDefined()
    return String(found)
  }

  #run(script: string): Promise<string> {
    return this.#call('POST', `${this.#session}/execute/sync`, { script, args: [] })
  }

  async #call<Value>(method: string, path: string, body?: object): Promise<Value> {
    const init = { method, ...(body === undefined ? {} : { body: JSON.stringify(body) }) }
    const response = await fetch(this.#url + path, init)
    const { value } = (await response.json()) as { value: Value }
    if (!response.ok) throw new Error(`${method} ${path}: ${JSON.stringify(value)}`)
    return value
  }
}

async function firstLine(stream: Readable): Promise<string> {
  for await (const line of createInterface(stream)) return line
  throw new Error('the display did not start')
}

describe.skipIf(!hasPart('webkit2gtk-driver'))('in WebKitGTK', () => {
  const webkit = new WebKit()
  beforeAll(() => webkit.launch())
  afterAll(() => webkit.close())

  test('a phone that scans the code signs the computer in', async () => {
    const { url } = await startService()
    const wallet = makeWallet()
    await webkit.open(url)
    await webkit.click('Show the code')
    const phone = phoneClient(url, wallet)
    const claim = await phone.claimOrder(await webkit.scan())
    await phone.approveOrder(claim, { challenge: await phone.getOrderChallenge(claim) })
    await webkit.see('You’re signed in')
    await webkit.see(shortAddress(wallet.address))
  })

  test('the approval page approves with the demo wallet, and sees what the computer does', async () => {
    const { url } = await startService()
    const desktop = await Desktop.start(url)
    await webkit.open(desktop.order.claimUrl)
    await webkit.click('Continue')
    await webkit.click('Approve')
    await webkit.see(/^Approved$|^Your computer is signed in$/m)
    const { status, json } = await desktop.finalize()
    expect([status, json.kind]).toEqual([200, 'login'])
    await webkit.see('Your computer is signed in')
    await webkit.click('Not you? Sign that computer out')
    await webkit.see('Signed out')
    expect(await desktop.isSignedIn(json.token)).toBe(false)
  })
})
