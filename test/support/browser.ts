import { accessSync, constants } from 'node:fs'
import { chromium, type LaunchOptions } from 'playwright-core'
import type { TestProject } from 'vitest/node'
import { hasPart } from './optional.ts'

declare module 'vitest' {
  interface ProvidedContext {
    /** Address of the browser that the test files of a run share. */
    browser: string | undefined
  }
}

/** Starts one browser for all files; a file's tests open contexts of their own in it, and close them. */
export async function setup(project: TestProject): Promise<(() => Promise<void>) | undefined> {
  if (!hasPart('chromium')) return undefined
  const server = await chromium.launchServer({ ...launchOptions(), host: '127.0.0.1' })
  project.provide('browser', server.wsEndpoint())
  return () => server.close()
}

/**
 * The browser to test with: Chromium's headless shell if it is there, which has the same engine without windows and
 * takes less than half of the CPU time; the whole of Chromium otherwise, or if WHOLE_BROWSER is set, as for the nightly
 * run.
 */
export function launchOptions(): LaunchOptions {
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
