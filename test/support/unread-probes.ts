import { once } from 'node:events'
import http, { type IncomingMessage } from 'node:http'
import http2 from 'node:http2'
import { expect, onTestFinished } from 'vitest'
import { spawnService } from './service.ts'

/** Streams of each connection; a connection can have one more. */
const streams = 249

/** Addresses. Linux has all of 127.0.0.0/8. */
const [attacking, other, orchestrator] = ['127.0.0.2', '127.0.0.3', '127.0.0.1']

/** A flood of probes whose answers are never read, from one address. */
export interface ProbeFlood {
  readonly heapMiB: number
  /** More streams than the heap has room for requests in progress. */
  readonly connections: number
}

/** Others are served beside a flood of probes, and those of an orchestrator are answered. */
export async function expectServedBesideProbes({ heapMiB, connections }: ProbeFlood): Promise<void> {
  const service = await spawnService({
    COUNTERSIGN_STORE: 'sqlite::memory:',
    COUNTERSIGN_RATE_LIMIT: 'on',
    NODE_OPTIONS: `--max-old-space-size=${heapMiB}`,
  })
  const port = Number(new URL(service.url).port)
  const paths = ['/healthz', '/readyz']
  for (let made = 0; made < connections; made++) {
    const options = { localAddress: attacking, settings: { initialWindowSize: 0 } } as http2.ClientSessionOptions
    const session = http2.connect(`http://127.0.0.1:${port}`, options).on('error', () => {})
    onTestFinished(() => session.destroy())
    await once(session, 'remoteSettings')
    for (let n = 0; n < streams; n++) {
      session
        .request({ ':path': paths[n % 2], ':method': n % 3 === 0 ? 'POST' : 'GET' }, { endStream: true })
        .on('error', () => {})
    }
    // The answer to a PING comes behind what was done with the streams before it.
    await new Promise((resolve) => session.ping(resolve))
  }
  const status = async (path: string, localAddress: string): Promise<number | undefined> => {
    const [response] = (await once(http.get({ port, path, localAddress, agent: false }), 'response')) as [
      IncomingMessage,
    ]
    response.resume()
    return response.statusCode
  }
  expect(await Promise.all([status('/api/auth/options', other), ...paths.map((path) => status(path, other))])).toEqual([
    200, 200, 200,
  ])
  expect(await Promise.all(paths.map((path) => status(path, orchestrator)))).toEqual([200, 200])
  // The flood is refused what is beyond its share.
  expect(service.log()).toContain(`"lastRefused":"${attacking}"`)
}
