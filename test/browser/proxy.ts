import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net'

/** A TCP proxy as a load balancer is: one address for people, one instance behind it, which can change at any time. */
export class SwitchingProxy {
  /** URL of the instance that new connections lead to. */
  target: string | undefined
  readonly url: string
  readonly #server: Server
  readonly #sockets = new Set<Socket>()

  private constructor(server: Server) {
    this.#server = server
    this.url = `http://localhost:${(server.address() as AddressInfo).port}`
    server.on('connection', (client) => this.#forward(client))
  }

  static async listen(): Promise<SwitchingProxy> {
    const server = createServer().listen(0, '127.0.0.1')
    await once(server, 'listening')
    return new SwitchingProxy(server)
  }

  async close(): Promise<void> {
    for (const socket of this.#sockets) socket.destroy()
    this.#server.close()
    await once(this.#server, 'close')
  }

  #forward(client: Socket): void {
    this.#keep(client)
    if (this.target === undefined) return void client.destroy()
    const instance = connect(Number(new URL(this.target).port), '127.0.0.1')
    this.#keep(instance)
    client.pipe(instance).pipe(client)
    // One side that dies takes the other with it, as with any proxy.
    client.on('close', () => instance.destroy())
    instance.on('close', () => client.destroy())
  }

  #keep(socket: Socket): void {
    this.#sockets.add(socket)
    socket.on('close', () => this.#sockets.delete(socket))
    socket.on('error', () => socket.destroy())
  }
}
