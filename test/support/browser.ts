import { accessSync, constants } from 'node:fs'
import { type Browser, chromium, firefox, type LaunchOptions } from 'playwright-core'
import { ws } from 'playwright-core/lib/utilsBundle'
import type { TestProject } from 'vitest/node'
import { hasPart } from './optional.ts'

declare module 'vitest' {
  interface ProvidedContext {
    /** Address of the browser that the test files of a run share. */
    browser: string | undefined
  }
}

/** Whether the tests of test/browser/ run in Firefox in place of Chromium. */
const inFirefox = process.env.TEST_BROWSER === 'firefox'

/** Whether the browser to test with is there. */
export function isBrowserInstalled(): boolean {
  return hasPart(inFirefox ? 'firefox-esr' : 'chromium')
}

/**
 * Starts one browser for all files; a file's tests open contexts of their own in it, and close them. Of Firefox each
 * file starts its own: one that crashes would take the others' along.
 */
export async function setup(project: TestProject): Promise<(() => Promise<void>) | undefined> {
  if (inFirefox || !isBrowserInstalled()) return undefined
  const server = await chromium.launchServer({ ...chromiumOptions(), host: '127.0.0.1' })
  project.provide('browser', server.wsEndpoint())
  return () => server.close()
}

/** Opens the browser to test with: the one of the run at its address, or a new one. */
export async function openBrowser(address: string | undefined): Promise<Browser> {
  if (inFirefox) return await launchFirefox()
  return address === undefined ? await chromium.launch(chromiumOptions()) : await chromium.connect(address)
}

/**
 * Chromium's headless shell if it is there, which has the same engine without windows and
 * takes less than half of the CPU time; the whole of Chromium otherwise, or if WHOLE_BROWSER is set, as for the nightly
 * run.
 */
function chromiumOptions(): LaunchOptions {
  const shell = process.env.WHOLE_BROWSER === undefined ? findProgram('chromium-headless-shell') : undefined
  return {
    executablePath: shell ?? programPath('chromium'),
    args: [
      '--no-sandbox',
      '--disable-gpu',
      '--disable-quic',
      '--no-first-run',
      '--disable-background-networking',
      '--disable-component-update',
      '--disable-sync',
    ],
  }
}

/** Starts Debian's Firefox, over WebDriver BiDi. Media features are preferences there, the same for all pages. */
export async function launchFirefox(): Promise<Browser> {
  const restore = answerUnknownCommand()
  const browser = await firefox.launch({
    channel: 'moz-firefox',
    executablePath: programPath('firefox-esr'),
    firefoxUserPrefs: { 'ui.prefersReducedMotion': 1 },
  })
  browser.once('disconnected', restore)
  return browser
}

/** The one command of WebDriver BiDi that playwright sends and Firefox does not know: preferences take its place. */
const unknownCommand = 'emulation.setMediaFeaturesOverride'

/** Has playwright's connections to a browser answer that command themselves. Returns a function that ends it. */
function answerUnknownCommand(): () => void {
  const { send } = ws.prototype
  ws.prototype.send = function (message, ...rest) {
    const { id, method } = JSON.parse(message) as { id: number; method: string }
    if (method !== unknownCommand) return send.call(this, message, ...rest)
    setImmediate(() => this.emit('message', JSON.stringify({ type: 'success', id, result: {} }), false))
  }
  return () => {
    ws.prototype.send = send
  }
}

/** Where a program is. Throws if it is not on the PATH. */
export function programPath(name: string): string {
  const path = findProgram(name)
  if (path === undefined) throw new Error(`${name} is not on the PATH`)
  return path
}

function findProgram(name: string): string | undefined {
  const paths = (process.env.PATH ?? '').split(':').map((folder) => `${folder}/${name}`)
  return paths.find((path) => {
    try {
      accessSync(path, constants.X_OK)
      return true
    } catch {
      return false
    }
  })
}
