import { once } from 'node:events'
import { createServer, request } from 'node:http'
import type { AddressInfo } from 'node:net'
import { onTestFinished } from 'vitest'
import type { CountersignOptions } from '../../src/index.ts'
import { startService } from '../support/service.ts'

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
 * Starts a service, and an application on another origin whose proxy routes `/api/auth` to it and nothing else, until the test ends.
 * `delayMs` is how long the proxy holds back each request to the service.
 */
export async function startProtectedHost(options: CountersignOptions = {}, delayMs = 0): Promise<ProtectedHost> {
  let target = ''
  const visited: string[] = []
  const proxy = createServer(async (from, to) => {
    const { method, url = '', headers } = from
    if (!url.startsWith('/api/auth/')) {
      visited.push(url)
      to.writeHead(200, { 'content-type': 'text/html' })
      return to.end(
        '<!doctype html><meta charset="utf-8"><link rel="icon" href="data:,"><title>App</title><h1>The application</h1>',
      )
    }
    await new Promise((resolve) => setTimeout(resolve, delayMs))
    const forwarded = {
      ...headers,
      'x-forwarded-proto': 'http',
      'x-forwarded-host': headers.host,
      'x-forwarded-for': '203.0.113.7',
    }
    const onward = request(`${target}${url}`, { method, headers: forwarded }, (answer) => {
      to.writeHead(answer.statusCode ?? 502, answer.headers)
      answer.pipe(to)
    })
    onward.on('error', () => to.destroy())
    to.on('close', () => onward.destroy())
    from.pipe(onward)
  }).listen(0, '127.0.0.1')
  onTestFinished(() => {
    proxy.closeAllConnections()
    proxy.close()
  })
  await once(proxy, 'listening')
  const url = `http://localhost:${(proxy.address() as AddressInfo).port}`
  target = (await startService({ ...options, trustedOrigins: [url], trustProxy: 1 })).url
  return {
    url,
    serviceUrl: target,
    signInUrl: (returnTo) => `${url}/api/auth/sign-in?${new URLSearchParams({ returnTo })}`,
    visited,
  }
}
