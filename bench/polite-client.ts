/**
 * A client that asks for next to nothing: one call after the other, 2 ms apart, on a connection of its own. How long it
 * waits shows how long the server's event loop is blocked by others. Runs in a worker thread, because the thread that
 * makes the load is blocked by itself.
 */
import { setTimeout as pause } from 'node:timers/promises'
import { parentPort, Worker, workerData } from 'node:worker_threads'
import { GrpcConnection } from './grpc.ts'
import { type Times, timesOf } from './harness.ts'
import { Http1Connection } from './http1.ts'

/** How to call the server. */
export type PoliteCall = 'nonce' | 'bare http' | 'bare http2'

interface Task {
  readonly port: number
  readonly call: PoliteCall
}

/** Calls a server from now on. */
export class PoliteClient implements AsyncDisposable {
  readonly #worker: Worker

  constructor(port: number, call: PoliteCall) {
    this.#worker = new Worker(new URL(import.meta.url), { workerData: { port, call } satisfies Task })
  }

  /** How long its calls took since the last time it was asked. */
  async times(): Promise<Times> {
    const answer = Promise.withResolvers<Times>()
    this.#worker.once('message', answer.resolve)
    this.#worker.once('error', answer.reject)
    this.#worker.postMessage('times')
    return await answer.promise
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#worker.terminate()
  }
}

if (parentPort !== null) await work(workerData as Task)

async function work({ port, call }: Task): Promise<void> {
  const { post } = await callerOf(port, call)
  let times: number[] = []
  parentPort?.on('message', () => {
    parentPort?.postMessage(timesOf(times))
    times = []
  })
  for (;;) {
    const startedAt = performance.now()
    await post()
    times.push(performance.now() - startedAt)
    await pause(2)
  }
}

async function callerOf(port: number, call: PoliteCall): Promise<{ post: () => Promise<unknown> }> {
  if (call === 'bare http2') {
    const connection = new GrpcConnection(port)
    return { post: () => connection.call('/', Buffer.alloc(0)) }
  }
  const connection = await Http1Connection.open(port)
  const path = call === 'nonce' ? '/api/auth/wallet/nonce' : '/'
  return { post: () => connection.post(path, 'application/json', '{}') }
}
