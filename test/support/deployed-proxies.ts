import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect } from 'vitest'
import { runCaddy } from './caddy.ts'
import type { Certificate } from './certificates.ts'
import { runHaproxy } from './haproxy.ts'
import { runNginx } from './nginx.ts'
import { freePort } from './redis-server.ts'

/** A proxy that runs with a file of deploy/, in front of two instances. */
export interface DeployedProxy {
  /** Where its clients reach it, by TLS. */
  readonly url: string
  /** Its port without TLS. */
  readonly plainUrl: string
  /** What it said of failures. */
  log(): string
}

/** What a test puts in the place of names, ports and files of deploy/. */
interface Place {
  readonly port: number
  readonly plainPort: number
  /** Ports of the two instances. */
  readonly upstreams: readonly [number, number]
  /** A certificate for localhost. */
  readonly certificate: Certificate
  /** Port of another site on the same host, with the lines of docs/proxies.md for it. */
  readonly site?: number
}

/** Starts a proxy, stopped when the test ends. */
type StartProxy = (place: Place) => Promise<{ log(): string }>

const starts: Readonly<Record<string, StartProxy>> = {
  nginx: async ({ port, plainPort, upstreams, certificate, site }) => {
    const shared = await deployed('nginx/countersign-shared.conf', addresses(upstreams))
    const file = await deployed('nginx/countersign.conf', {
      ...(site && { '  location / {': `${await linesForSite('nginx', site)}\n  location / {` }),
      ...addresses(upstreams),
      'listen 80;': `listen 127.0.0.1:${plainPort};`,
      'listen 443 ssl': `listen 127.0.0.1:${port} ssl`,
      'server_name auth.example;': 'server_name localhost;',
      '/etc/ssl/auth.example.crt': certificate.cert,
      '/etc/ssl/auth.example.key': certificate.key,
      // Browsers do not name the port 443.
      'https://$host$request_uri': `https://$host:${port}$request_uri`,
    })
    return await runNginx(plainPort, shared + file)
  },
  caddy: async ({ port, plainPort, upstreams, certificate: { cert, key }, site }) => {
    const file = await deployed('caddy/Caddyfile', {
      ...addresses(upstreams),
      // What Caddy does by itself where it gets certificates.
      'auth.example {': `http://127.0.0.1:${plainPort} {
        redir https://localhost:${port}{uri} 308
      }
      https://localhost:${port} {
        tls ${cert} ${key}
        ${site ? await linesForSite('caddyfile', site) : ''}`,
    })
    return await runCaddy(plainPort, file)
  },
  haproxy: async ({ port, plainPort, upstreams, certificate: { cert, key }, site }) => {
    const [rule = '', backend = ''] = site ? (await linesForSite('haproxy', site)).split('\n\n') : []
    const both = `${cert}.both`
    await writeFile(both, [await readFile(cert), await readFile(key)].join('\n'))
    const file = await deployed('haproxy/haproxy.cfg', {
      ...addresses(upstreams),
      '  use_backend countersign_grpc': `${rule}\n  use_backend countersign_grpc`,
      'user haproxy': '',
      'group haproxy': '',
      'bind :80\n': `bind 127.0.0.1:${plainPort}\n`,
      'bind :443 ': `bind 127.0.0.1:${port} `,
      '/etc/haproxy/auth.example.pem': both,
      'redirect scheme https': `redirect prefix https://localhost:${port}`,
    })
    return await runHaproxy(plainPort, `${file}\n${backend}`)
  },
}

/** The proxies that deploy/ has a configuration for. */
export const deployedProxies: readonly string[] = Object.keys(starts)

/** Ports for a proxy that is yet to be started, because the service needs to know its address first. */
export async function proxyPorts(): Promise<Pick<Place, 'port' | 'plainPort'>> {
  return { port: await freePort(), plainPort: await freePort() }
}

/** Starts the proxy of this name with its file of deploy/. */
export async function startDeployed(name: string, place: Place): Promise<DeployedProxy> {
  const { log } = await (starts[name] as StartProxy)(place)
  return { url: `https://localhost:${place.port}`, plainUrl: `http://127.0.0.1:${place.plainPort}`, log }
}

function addresses([first, second]: Place['upstreams']): Record<string, string> {
  return { '127.0.0.1:8080': `127.0.0.1:${first}`, '127.0.0.1:8081': `127.0.0.1:${second}` }
}

/** The lines of docs/proxies.md for another site on the same host. */
async function linesForSite(language: string, port: number): Promise<string> {
  const page = await readFile(new URL('../../docs/proxies.md', import.meta.url), 'utf8')
  const [, lines = ''] = new RegExp(`\`\`\`${language}\\n([\\s\\S]*?)\`\`\``).exec(page) ?? []
  expect(lines).toContain('127.0.0.1:3000')
  return lines.replace('127.0.0.1:3000', `127.0.0.1:${port}`)
}

/** The text of a file in deploy/ with replacements, all of which it has to need. */
async function deployed(path: string, replacements: Readonly<Record<string, string>>): Promise<string> {
  let content = await readFile(new URL(join('../../deploy', path), import.meta.url), 'utf8')
  for (const [text, own] of Object.entries(replacements)) {
    expect(content).toContain(text)
    content = content.replaceAll(text, own)
  }
  expect(content.replaceAll(/^\s*#.*$/gm, '')).not.toContain('auth.example')
  return content
}
