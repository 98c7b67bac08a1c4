import { createSocket } from 'node:dgram'
import { getServers, lookup, setServers } from 'node:dns'
import { readFile } from 'node:fs/promises'
import type { RequestListener } from 'node:http'
import { createServer } from 'node:https'
import { type AddressInfo, isIP, type LookupFunction, Socket, type TcpNetConnectOpts } from 'node:net'
import { createSecureContext, type SecureContext } from 'node:tls'
import { afterAll } from 'vitest'
import { trustedAuthority } from './tls.ts'

/** The domain of all hosts that have a certificate. */
const domain = 'clients.example'

/** The addresses of a host, IPv6 without a dot. */
type Addresses = () => readonly string[] | undefined

/** A piece of the internet on this machine: name servers, and hosts with TLS on public addresses. */
export interface Internet {
  /**
   * Puts a host there, and returns its origin. A name with a dot is the whole one; others are in clients.example.
   * `addresses` is asked at each look-up; for `undefined`, the name servers give no answer.
   */
  put(name: string, serve: RequestListener, addresses?: Addresses): string
  /** Takes a host away: its name stays, and nothing is at its address. */
  take(name: string): void
  /** Addresses that this process has tried to connect to on port 443, since the last {@link Internet.forget}. */
  readonly connections: string[]
  /** Names that were looked up, by the type of their record. */
  readonly lookups: string[]
  /** Largest number of requests that were answered at once. */
  readonly mostAtOnce: number
  forget(): void
}

/**
 * Starts it for the tests of this file. Names are looked up by DNS at a server on loopback (`dns.setServers`), the
 * certificates are of an authority that this process trusts (`tls.setDefaultCACertificates`), and a connection to port
 * 443 of an address goes to the host that has it. A connection to any other address on that port fails, and is on the
 * list.
 */
export async function startInternet(): Promise<Internet> {
  const authority = await trustedAuthority()
  const contextOf = async (host: string): Promise<SecureContext> => {
    const files = await authority.issue(host)
    return createSecureContext({ cert: await readFile(files.cert), key: await readFile(files.key) })
  }
  const ofDomain = await contextOf(`*.${domain}`)
  const hosts = new Map<string, { readonly serve: RequestListener; readonly addresses: Addresses }>()
  const routed = new Set<string>()
  const [connections, lookups]: [string[], string[]] = [[], []]
  const open = { now: 0, most: 0 }
  const server = createServer(
    {
      SNICallback: (host, done) => {
        if (host.endsWith(`.${domain}`)) return done(null, ofDomain)
        return void contextOf(host).then((context) => done(null, context), done)
      },
    },
    (request, response) => {
      open.most = Math.max(open.most, ++open.now)
      response.once('close', () => open.now--)
      hosts.get(String(request.headers.host))?.serve(request, response)
    },
  ).listen(0, '127.0.0.1')
  await new Promise((resolve) => server.once('listening', resolve))
  const { port } = server.address() as AddressInfo

  const names = createSocket('udp4').bind(0, '127.0.0.1')
  await new Promise((resolve) => names.once('listening', resolve))
  names.on('message', (query, { port, address }) => {
    const { name, type, end } = questionIn(query)
    lookups.push(`${name} ${type === 1 ? 'A' : type === 28 ? 'AAAA' : type}`)
    const all = hosts.has(name) ? hosts.get(name)?.addresses() : []
    if (all === undefined) return
    const found = all.filter((each) => (isIP(each) === 4 ? 1 : 28) === type)
    names.send(replyTo(query.subarray(0, end), { isKnown: hosts.has(name), type, addresses: found }), port, address)
  })
  const before = getServers()
  setServers([`127.0.0.1:${names.address().port}`])

  const { connect } = Socket.prototype
  Socket.prototype.connect = function (this: Socket, ...args: unknown[]): Socket {
    const [options, done] = (Array.isArray(args[0]) ? args[0] : args) as [TcpNetConnectOpts, () => void]
    if (Number(options?.port) !== 443) return connect.apply(this, args as never)
    const to = (addresses: readonly string[]): void => {
      connections.push(...addresses)
      // Nothing listens on port 1.
      const target = { host: '127.0.0.1', port: addresses.some((each) => routed.has(each)) ? port : 1 }
      connect.call(this, { ...options, ...target, lookup: undefined, autoSelectFamily: false } as never, done)
    }
    const find = (options.lookup ?? lookup) as LookupFunction
    if (isIP(String(options.host)) !== 0) to([String(options.host)])
    else
      find(String(options.host), { all: true }, (error, found) =>
        error === null ? to([found].flat().map((each) => (each as { address: string }).address)) : this.destroy(error),
      )
    return this
  } as never

  afterAll(() => {
    Socket.prototype.connect = connect
    setServers(before)
    names.close()
    server.close()
    server.closeAllConnections()
  })
  return {
    connections,
    lookups,
    get mostAtOnce() {
      return open.most
    },
    put(name, serve, addresses) {
      const host = hostOf(name)
      const own = `20.0.0.${hosts.size + 1}`
      routed.add(own)
      hosts.set(host, { serve, addresses: addresses ?? (() => [own]) })
      return `https://${host}`
    },
    take(name) {
      hosts.set(hostOf(name), { serve: (_, response) => response.destroy(), addresses: () => ['20.0.1.1'] })
    },
    forget() {
      connections.length = 0
      lookups.length = 0
      open.most = open.now
    },
  }
}

function hostOf(name: string): string {
  return name.includes('.') ? name : `${name}.${domain}`
}

/** The question of a DNS query (RFC 1035, 4.1.2), which has one. */
function questionIn(query: Buffer): { readonly name: string; readonly type: number; readonly end: number } {
  const labels: string[] = []
  let at = 12
  for (let length = query.readUInt8(at); length > 0; length = query.readUInt8(at)) {
    labels.push(query.toString('latin1', at + 1, at + 1 + length).toLowerCase())
    at += 1 + length
  }
  return { name: labels.join('.'), type: query.readUInt16BE(at + 1), end: at + 5 }
}

interface Reply {
  readonly isKnown: boolean
  readonly type: number
  readonly addresses: readonly string[]
}

/** The reply to a query: addresses that may not be kept, or that there is no such name. */
function replyTo(query: Buffer, { isKnown, type, addresses }: Reply): Buffer {
  const header = Buffer.from(query)
  header.writeUInt16BE(isKnown ? 0x8180 : 0x8183, 2)
  header.writeUInt16BE(1, 4)
  header.writeUInt16BE(addresses.length, 6)
  header.writeUInt32BE(0, 8)
  const records = addresses.map((address) => {
    const bytes = bytesOf(address)
    const record = Buffer.alloc(12)
    record.writeUInt16BE(0xc00c, 0)
    record.writeUInt16BE(type, 2)
    record.writeUInt16BE(1, 4)
    record.writeUInt16BE(bytes.length, 10)
    return Buffer.concat([record, bytes])
  })
  return Buffer.concat([header, ...records])
}

function bytesOf(address: string): Buffer {
  if (isIP(address) === 4) return Buffer.from(address.split('.').map(Number))
  const [before = '', after = ''] = address.split('::')
  const [head, tail] = [before, after].map((part) => part.split(':').filter((each) => each !== ''))
  const zeros = Array.from({ length: 8 - (head?.length ?? 0) - (tail?.length ?? 0) }, () => '0')
  const words = [...(head ?? []), ...zeros, ...(tail ?? [])]
  return Buffer.from(words.map((word) => word.padStart(4, '0')).join(''), 'hex')
}
