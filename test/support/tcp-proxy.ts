import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import { onTestFinished } from 'vitest'

/** A TCP proxy that a test can cut, stop or switch to another target. */
export interface TcpProxy {
  readonly port: number
  /** Where new connections go. */
  targetPort: number
  /** What becomes of each chunk that the target answers. They stay in order, however long one takes. */
  answer: (chunk: Buffer) => Buffer | Promise<Buffer>
  /** Ends all connections; new ones are accepted again. */
  cut(): void
  /**
   * From the first chunk on that a client sends with this text in it: that chunk still goes through, nothing after it,
   * in either direction. Resolves when it has come.
   */
  stallAfter(text: string): Promise<void>
}

/**
 * Starts one, until the test ends. With `allowHalfOpen` a connection that one side has ended stays until the other side
 * ends it, too; otherwise this proxy does.
 */
export async function startTcpProxy(
  targetPort: number,
  { allowHalfOpen = false }: { allowHalfOpen?: boolean } = {},
): Promise<TcpProxy> {
  const pairs = new Set<[Socket, Socket]>()
  let trigger: { text: string; fired: () => void } | undefined
  let stalled = false
  const server = createServer({ allowHalfOpen }, (client) => {
    const upstream = connect({ port: proxy.targetPort, host: '127.0.0.1', allowHalfOpen })
    client.on('end', () => upstream.end())
    upstream.on('end', () => client.end())
    const pair: [Socket, Socket] = [client, upstream]
    pairs.add(pair)
    client.on('data', (chunk) => {
      if (stalled) return
      upstream.write(chunk)
      if (trigger !== undefined && chunk.includes(trigger.text)) {
        stalled = true
        trigger.fired()
      }
    })
    let answered = Promise.resolve()
    upstream.on('data', (chunk: Buffer) => {
      answered = answered.then(async () => {
        const answer = await proxy.answer(chunk)
        if (!stalled) client.write(answer)
      })
    })
    for (const socket of pair) {
      socket.on('error', () => {})
      socket.on('close', () => {
        client.destroy()
        upstream.destroy()
        pairs.delete(pair)
      })
    }
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const proxy: TcpProxy = {
    port: (server.address() as AddressInfo).port,
    targetPort,
    answer: (chunk) => chunk,
    cut() {
      for (const [client, upstream] of pairs) {
        client.destroy()
        upstream.destroy()
      }
    },
    stallAfter: (text) =>
      new Promise((resolve) => {
        trigger = { text, fired: resolve }
      }),
  }
  onTestFinished(() => {
    proxy.cut()
    server.close()
  })
  return proxy
}
