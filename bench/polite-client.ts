/**
 * A client that asks for next to nothing: one call after the other, 2 ms apart, on a connection of its own. How long it
 * waits shows how long the server's event loop is blocked by others. Runs in a worker thread, because the thread that
 * makes the load is blocked by itself.
 */
import { setTimeout as pause } from 'node:timers/promises'
import { parentPort, Worker, workerData } from 'node:worker_threads'
import { SignInService } from '../gen/server/countersign/v1/sign_in_service_pb.ts'
import { GrpcConnection, pathOf } from './grpc.ts'
import { type Times, timesOf } from './harness.ts'
import { Http1Connection } from './http1.ts'

/** How to call the server. */
export type PoliteCall = 'nonce' | 'nonce by gRPC' | 'bare http' | 'bare http2'

const pathsOf: Readonly<Record<PoliteCall, string>> = {
  nonce: '/api/auth/wallet/nonce',
  'nonce by gRPC': pathOf(SignInService.method.issueNonce),
  'bare http': '/',
  'bare http2': '/',
}

/** What a client's calls came to. */
export interface Heard {
  /** How long they took, those that failed included. */
  readonly times: Times
  /** How many failed, as those that a store does not answer in time. */
  readonly failed: number
}

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

  /** Forgets the calls so far. */
  restart(): void {
    this.#worker.postMessage('restart')
  }

  /** What its calls came to since the restart; resolves once there is one. */
  async heard(): Promise<Heard> {
    const answer = Promise.withResolvers<Heard>()
    this.#worker.once('message', answer.resolve)
    this.#worker.once('error', answer.reject)
    this.#worker.postMessage('heard')
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
  let failed = 0
  let awaited = false
  const tell = (): void => {
    awaited = times.length === 0
    if (!awaited) parentPort?.postMessage({ times: timesOf(times), failed } satisfies Heard)
  }
  parentPort?.on('message', (asked: 'heard' | 'restart') => {
    if (asked === 'heard') {
      tell()
    } else {
      times = []
      failed = 0
    }
  })
  for (;;) {
    const startedAt = performance.now()
    await post().catch(() => failed++)
    times.push(performance.now() - startedAt)
    if (awaited) tell()
    await pause(2)
  }
}

async function callerOf(port: number, call: PoliteCall): Promise<{ post: () => Promise<unknown> }> {
  const path = pathsOf[call]
  if (call === 'bare http2' || call === 'nonce by gRPC') {
    const connection = new GrpcConnection(port)
    return { post: () => connection.call(path, Buffer.alloc(0)) }
  }
  const connection = await Http1Connection.open(port)
  return { post: () => connection.post(path, 'application/json', '{}') }
}
