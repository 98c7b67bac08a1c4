import { once } from 'node:events'

/** What ran of a script since the last time, by function. */
export interface Script {
  readonly url: string
  readonly functions: readonly {
    readonly ranges: readonly { readonly startOffset: number; readonly count: number }[]
  }[]
}

/** Reads the heap of a Node process that was started with `--inspect`, and counts the calls of its functions. */
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

  /** Counts the calls of each function from now on. */
  async startCounting(): Promise<void> {
    await this.#call('Profiler.enable')
    await this.#call('Profiler.startPreciseCoverage', { callCount: true })
  }

  /** What ran since counting began or since the last answer. */
  async takeCounts(): Promise<readonly Script[]> {
    return ((await this.#call('Profiler.takePreciseCoverage')) as { result: Script[] }).result
  }

  async #call(method: string, params?: unknown): Promise<unknown> {
    const id = ++this.#id
    this.#socket.send(JSON.stringify({ id, method, params }))
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
