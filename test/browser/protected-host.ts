import { createServer } from 'node:http'
import type { CountersignOptions } from '../../src/service/config.ts'
import { listen } from '../support/listening.ts'
import { startService } from '../support/service.ts'
import { passOn } from './forwarding.ts'

/** An application behind a proxy that passes the base path on to a service, which has another address. */
export interface ProtectedHost {
  /** Address of the application. */
  readonly url: string
  /** Address of the service: its `publicUrl`. */
  readonly serviceUrl: string
  /** The sign-in page, leading back to a path of the application. */
  signInUrl(returnTo: string): string
  /** Paths that the browser asked the application for, without those below the base path. */
  readonly visited: string[]
}

/**
 * Starts a service, and an application on another origin whose proxy routes `/api/auth` to it and nothing else, until
 * the test ends. `delayMs` is how long the proxy holds back each request to the service.
 */
export async function startProtectedHost(options: CountersignOptions = {}, delayMs = 0): Promise<ProtectedHost> {
  let target = ''
  const visited: string[] = []
  const proxy = createServer(async (from, to) => {
    const { url = '' } = from
    if (!url.startsWith('/api/auth/')) {
      visited.push(url)
      to.writeHead(200, { 'content-type': 'text/html' })
      return to.end(
        '<!doctype html><meta charset="utf-8"><link rel="icon" href="data:,"><title>App</title><h1>The application</h1>',
      )
    }
    await new Promise((resolve) => setTimeout(resolve, delayMs))
    passOn(from, to, target, 'http')
  })
  const url = `http://localhost:${await listen(proxy)}`
  target = (await startService({ ...options, trustedOrigins: [url], trustProxy: 1 })).url
  return {
    url,
    serviceUrl: target,
    signInUrl: (returnTo) => `${url}/api/auth/sign-in?${new URLSearchParams({ returnTo })}`,
    visited,
  }
}
