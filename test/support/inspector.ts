import { once } from 'node:events'

/** Reads the heap of a Node process that was started with `--inspect`. */
export class Inspector {
  readonly #socket: WebSocket
  readonly #gone = new AbortController()
  #id = 0

  private constructor(socket: WebSocket) {
    this.#socket = socket
    socket.addEventListener('close', () => this.#gone.abort(new Error('the process has gone')))
  }

  /** Connects to the inspector whose address is in what the process wrote. */
  static async connect(log: string): Promise<Inspector> {
    const address = /Debugger listening on (ws:\S+)/.exec(log)?.[1]
    if (address === undefined) throw new Error(`no inspector: ${log}`)
    const socket = new WebSocket(address)
    await once(socket, 'open')
    return new Inspector(socket)
  }

  /** Bytes in use on the heap after garbage has been collected. */
  async heapUsed(): Promise<number> {
    await this.#call('HeapProfiler.collectGarbage')
    return ((await this.#call('Runtime.getHeapUsage')) as { usedSize: number }).usedSize
  }

  async #call(method: string): Promise<unknown> {
    const id = ++this.#id
    this.#socket.send(JSON.stringify({ id, method }))
    for (;;) {
      const [{ data }] = (await once(this.#socket, 'message', { signal: this.#gone.signal })) as [MessageEvent<string>]
      const message = JSON.parse(data)
      if (message.id === id) return message.result
    }
  }

  close(): void {
    this.#socket.close()
  }
}
