import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net'
import { onTestFinished } from 'vitest'

/** A TCP proxy whose connections can be cut, or go silent, as those of real networks do. */
export class CuttableProxy {
  /** Connections that have ended, from whichever side. */
  closed = 0
  #target: URL
  readonly #server: Server
  readonly #pairs = new Set<{ readonly client: Socket; readonly upstream: Socket; request: string }>()
  #mode: 'forward' | 'refuse' | 'swallow' | 'hold' = 'forward'
  #onRefused: (() => void) | undefined

  private constructor(target: string) {
    this.#target = new URL(target)
    this.#server = createServer((client) => this.#accept(client))
  }

  /** Starts a proxy in front of a service, on a free port. */
  static async start(target: string): Promise<CuttableProxy> {
    const proxy = new CuttableProxy(target)
    proxy.#server.listen(0, '127.0.0.1')
    await once(proxy.#server, 'listening')
    onTestFinished(() => {
      proxy.cut()
      proxy.#server.close()
    })
    return proxy
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`
  }

  /** Leads new connections elsewhere. */
  retarget(target: string): void {
    this.#target = new URL(target)
  }

  /** Cuts all connections. */
  cut(): void {
    for (const { client, upstream } of this.#pairs) {
      client.destroy()
      upstream.destroy()
    }
  }

  /** Cuts all connections, and all new ones until {@link forward}. Resolves when a client has tried once. */
  async refuse(): Promise<void> {
    this.#mode = 'refuse'
    const refused = new Promise<void>((resolve) => {
      this.#onRefused = resolve
    })
    this.cut()
    await refused
  }

  /** Lets the connections whose newest request has this text in it go silent, without closing them. */
  silence(text: string): void {
    for (const { client, upstream, request } of this.#pairs) if (request.includes(text)) upstream.unpipe(client)
  }

  /** Passes on what clients say, and cuts their connection when the answer comes, until {@link forward}. */
  swallowAnswers(): void {
    this.#mode = 'swallow'
    this.cut()
  }

  /** Passes on what clients say, but no answers, until {@link forward}. */
  holdAnswers(): void {
    this.#mode = 'hold'
    this.cut()
  }

  forward(): void {
    this.#mode = 'forward'
  }

  #accept(client: Socket): void {
    if (this.#mode === 'refuse') {
      client.destroy()
      this.#onRefused?.()
      return
    }
    const upstream = connect(Number(this.#target.port), this.#target.hostname)
    const pair = { client, upstream, request: '' }
    this.#pairs.add(pair)
    for (const socket of [client, upstream]) {
      socket.on('error', () => {})
      socket.on('close', () => {
        client.destroy()
        upstream.destroy()
        if (this.#pairs.delete(pair)) this.closed++
      })
    }
    client.on('data', (chunk) => {
      if (chunk.includes(' HTTP/1.1')) pair.request = chunk.toString('latin1')
    })
    client.pipe(upstream)
    if (this.#mode === 'swallow') upstream.once('data', () => client.destroy())
    else if (this.#mode === 'forward') upstream.pipe(client)
  }
}
