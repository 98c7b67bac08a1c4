import { once } from 'node:events'
import { readFile } from 'node:fs/promises'
import {
  createServer,
  type IncomingHttpHeaders,
  type IncomingMessage,
  type Server,
  type ServerResponse,
} from 'node:http'
import type { AddressInfo } from 'node:net'
import { buffer } from 'node:stream/consumers'
import { expect, onTestFinished } from 'vitest'
import { runCaddy } from './caddy.ts'
import { runNginx } from './nginx.ts'
import type { RunningProxy } from './proxy-process.ts'

const guide = await readFile(new URL('../../docs/forward-auth.md', import.meta.url), 'utf8')

/** A configuration of the guide, with the addresses of this test in place of the guide's. */
function documented(language: string, addresses: Readonly<Record<string, string>>): string {
  let [, snippet = ''] = new RegExp(`\`\`\`${language}\n(.*?)\`\`\``, 's').exec(guide) ?? []
  for (const [address, own] of Object.entries(addresses)) {
    expect(snippet).toContain(address)
    snippet = snippet.replaceAll(address, own)
  }
  return snippet
}

const upstreams = (service: number, application: number) => ({
  '127.0.0.1:8080': `127.0.0.1:${service}`,
  '127.0.0.1:3000': `127.0.0.1:${application}`,
})

/** Starts a proxy on a port as the guide says, in front of a service and an application on ports of their own. */
export type StartProxy = (port: number, service: number, application: number) => Promise<RunningProxy>

/** The proxies of the guide that can be run here. */
export const proxies: Readonly<Record<string, StartProxy>> = {
  nginx: (port, service, application) =>
    runNginx(
      port,
      documented('nginx', {
        ...upstreams(service, application),
        'listen 443 ssl;': `listen 127.0.0.1:${port};`,
        'ssl_certificate /etc/ssl/app.example.crt;': '',
        'ssl_certificate_key /etc/ssl/app.example.key;': '',
      }),
    ),
  caddy: (port, service, application) =>
    runCaddy(
      port,
      documented('caddyfile', { ...upstreams(service, application), 'app.example {': `http://127.0.0.1:${port} {` }),
    ),
}

const page =
  '<!doctype html><meta charset="utf-8"><link rel="icon" href="data:,"><title>App</title><h1>The application</h1>'

/** An application that leaves it to a proxy who may see it, and keeps what reached it. */
export class Application {
  /** What reached it: method and path. */
  readonly asked: string[] = []
  /** The headers of the last request. */
  headers: IncomingHttpHeaders = {}
  /** Body of the last request. */
  body: Buffer = Buffer.alloc(0)
  /** The answer to the last request for `/events`, which stays open. */
  events: ServerResponse | undefined
  readonly #server: Server

  constructor() {
    this.#server = createServer(async (asked, answer) => {
      this.#keep(asked)
      this.body = await buffer(asked)
      if (asked.url !== '/events') return answer.writeHead(201, { 'content-type': 'text/html' }).end(page)
      this.events = answer.writeHead(200, { 'content-type': 'text/event-stream' })
      answer.flushHeaders()
    })
    this.#server.on('upgrade', (asked, socket) => {
      this.#keep(asked)
      socket.on('error', () => {})
      socket.write('HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n')
      socket.pipe(socket)
    })
  }

  async listen(): Promise<number> {
    this.#server.listen(0, '127.0.0.1')
    await once(this.#server, 'listening')
    onTestFinished(() => {
      this.#server.closeAllConnections()
      this.#server.close()
    })
    return (this.#server.address() as AddressInfo).port
  }

  #keep({ method, url, headers }: IncomingMessage): void {
    this.asked.push(`${method} ${url}`)
    this.headers = headers
  }
}
