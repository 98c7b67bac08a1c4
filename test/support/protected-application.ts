import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import {
  createServer,
  type IncomingHttpHeaders,
  type IncomingMessage,
  type Server,
  type ServerResponse,
} from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { buffer } from 'node:stream/consumers'
import { expect, onTestFinished } from 'vitest'
import { blocksOf } from '../docs/blocks.ts'
import { runCaddy } from './caddy.ts'
import type { Certificate } from './certificates.ts'
import { runNginx } from './nginx.ts'
import type { RunningProxy } from './proxy-process.ts'
import { freePort } from './redis-server.ts'

/** A configuration of deploy/, with the addresses of this test in place of its own. */
async function deployed(file: string, addresses: Readonly<Record<string, string>>): Promise<string> {
  let configuration = await readFile(new URL(`../../deploy/${file}`, import.meta.url), 'utf8')
  for (const [address, own] of Object.entries(addresses)) {
    expect(configuration).toContain(address)
    configuration = configuration.replaceAll(address, own)
  }
  return configuration
}

const upstreams = (service: number, application: number) => ({
  '127.0.0.1:8080': `127.0.0.1:${service}`,
  ...applicationAt(application),
})

const applicationAt = (port: number) => ({ '127.0.0.1:3000': `127.0.0.1:${port}` })

/** The file that nginx's configurations share, with one instance. */
async function sharedNginx(service: number): Promise<string> {
  const file = 'nginx/countersign-shared.conf'
  return await deployed(file, {
    '127.0.0.1:8080': `127.0.0.1:${service}`,
    '  server 127.0.0.1:8081 max_fails=0;\n': '',
  })
}

/**
 * Starts a proxy on a port with the file of deploy/, in front of a service and an application on ports of their own.
 * `replaced` are texts of the file with what stands in their place.
 */
export type StartProxy = (
  port: number,
  service: number,
  application: number,
  replaced?: Readonly<Record<string, string>>,
) => Promise<RunningProxy>

/** What an http block can say for all servers, and the file's server must not take over. */
const laxNames = 'ignore_invalid_headers off;\nunderscores_in_headers on;\n'

/** The proxies of docs/forward-auth.md that can be run here. */
export const proxies: Readonly<Record<string, StartProxy>> = {
  nginx: async (port, service, application, replaced = {}) =>
    runNginx(
      port,
      laxNames +
        (await sharedNginx(service)) +
        (await deployed('nginx/forward-auth.conf', {
          ...applicationAt(application),
          'listen 443 ssl http2;': `listen 127.0.0.1:${port};`,
          'ssl_certificate /etc/ssl/app.example.crt;': '',
          'ssl_certificate_key /etc/ssl/app.example.key;': '',
          ...replaced,
        })),
    ),
  caddy: async (port, service, application, replaced = {}) =>
    runCaddy(
      port,
      await deployed('caddy/forward-auth.Caddyfile', {
        ...upstreams(service, application),
        'app.example {': `http://127.0.0.1:${port} {`,
        ...replaced,
      }),
    ),
}

/** This nginx with TLS, as browsers reach it. */
export function nginxOverTls({ cert, key }: Certificate): StartProxy {
  return async (port, service, application) =>
    runNginx(
      port,
      (await sharedNginx(service)) +
        (await deployed('nginx/forward-auth.conf', {
          ...applicationAt(application),
          'listen 443 ': `listen 127.0.0.1:${port} `,
          '/etc/ssl/app.example.crt': cert,
          '/etc/ssl/app.example.key': key,
        })),
    )
}

/** What docs/forward-auth.md adds to a proxy's file for an application that takes its users from `X-Remote-User`. */
export async function linesForRemoteUser(proxy: string): Promise<Record<string, string>> {
  const blocks = blocksOf(await readFile(new URL('../../docs/forward-auth.md', import.meta.url), 'utf8'))
  const linesIn = (language: string) => blocks.find((block) => block.language === language)?.text ?? ''
  if (proxy === 'nginx') return { '  # Without the session': `${linesIn('nginx')}  # Without the session` }
  const [drop = '', set = ''] = linesIn('caddyfile').split('\n')
  return {
    'request_header -*countersign*': `request_header -*countersign*\n${drop}`,
    'header_up Cookie': `${set}\nheader_up Cookie`,
  }
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

/** An application on a server of another language. */
export interface ForeignApplication {
  readonly port: number
  /** What reached it: method, path and the user that it takes the request to be from. */
  readonly asked: readonly string[]
}

const hypercornApplication = `
async def app(scope, receive, send):
    if scope['type'] != 'http':
        return
    headers = dict(scope['headers'])
    user = headers.get(b'x-countersign-user', b'').decode()
    print('asked', scope['method'], scope['path'], user, flush=True)
    await send({'type': 'http.response.start', 'status': 200, 'headers': []})
    await send({'type': 'http.response.body', 'body': b'for ' + user.encode()})
`

const phpApplication = `<?php
$user = $_SERVER['HTTP_X_COUNTERSIGN_USER'] ?? '';
$request = $_SERVER['REQUEST_METHOD'] . ' ' . $_SERVER['REQUEST_URI'];
file_put_contents('php://stdout', "asked $request $user\n");
echo json_encode($_SERVER);
`

/** Hypercorn, which upgrades requests to HTTP/2 without TLS unless it is told not to. */
export const runHypercorn = (): Promise<ForeignApplication> =>
  runForeign('application.py', hypercornApplication, (port) => [
    'hypercorn',
    '-b',
    `127.0.0.1:${port}`,
    'application:app',
  ])

/** PHP's own server, which makes one variable of all spellings of a header's name. */
export const runPhp = (): Promise<ForeignApplication> =>
  runForeign('index.php', phpApplication, (port) => ['php', '-S', `127.0.0.1:${port}`, 'index.php'])

/** Radicale as docs/forward-auth.md has it: its users are in `X-Remote-User`. */
export const runRadicale = (): Promise<ForeignApplication> =>
  runForeign('config', '[auth]\ntype = http_x_remote_user\n', (port) => [
    'radicale',
    ...['--config', 'config', '--storage-filesystem-folder', 'collections'],
    ...['--server-hosts', `127.0.0.1:${port}`],
  ])

async function runForeign(
  file: string,
  program: string,
  command: (port: number) => readonly [string, ...string[]],
): Promise<ForeignApplication> {
  const folder = await mkdtemp(join(tmpdir(), 'countersign-application-'))
  await writeFile(join(folder, file), program)
  const port = await freePort()
  const [server, ...args] = command(port)
  const child = spawn(server, args, { cwd: folder, stdio: ['ignore', 'pipe', 'ignore'] })
  const exited = once(child, 'exit')
  onTestFinished(async () => {
    child.kill('SIGTERM')
    await exited
    await rm(folder, { recursive: true, force: true })
  })
  const asked: string[] = []
  createInterface(child.stdout).on('line', (line) => {
    if (line.startsWith('asked ')) asked.push(line.slice('asked '.length).trim())
  })
  for (;;) {
    if (
      await fetch(`http://127.0.0.1:${port}/`).then(
        () => true,
        () => false,
      )
    )
      return { port, asked }
    if (child.exitCode !== null) throw new Error(`${server} ended with ${child.exitCode}`)
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
}
