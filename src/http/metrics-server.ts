import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import { listenOn, portOf } from './port/listen.ts'

/** Time limits of a scraper in milliseconds: for a request, between two, and while nothing moves. */
const requestMs = 5_000
const keepAliveMs = 65_000
const idleMs = 70_000

/** Most connections at a time. Prometheus holds one; more are closed as they are accepted. */
const maxConnections = 32

/** Prometheus' text format. */
const contentType = 'text/plain; version=0.0.4; charset=utf-8'

/** Serves metrics on a port of their own: `GET /metrics` only. */
export class MetricsServer {
  readonly #text: () => Promise<string>
  readonly #servers: Server[] = []

  constructor(text: () => Promise<string>) {
    this.#text = text
  }

  /**
   * Starts to listen; port 0 takes a free one. Resolves with the port in use.
   *
   * @throws ListenError if the host or port cannot be listened on.
   */
  async listen(port: number, host: string): Promise<number> {
    const servers = await listenOn({
      port,
      host,
      settings: { port: 'COUNTERSIGN_METRICS_PORT', host: 'COUNTERSIGN_METRICS_HOST' },
      createServer: () => this.#createServer(),
    })
    this.#servers.push(...servers)
    return portOf(servers[0])
  }

  /** Stops listening and closes all connections, those of waiting scrapers included. */
  async close(): Promise<void> {
    const stopped = this.#servers.map((server) => new Promise<void>((resolve) => server.close(() => resolve())))
    for (const server of this.#servers) server.closeAllConnections()
    await Promise.all(stopped)
  }

  #createServer(): Server {
    const server = createServer(
      {
        requestTimeout: requestMs,
        keepAliveTimeout: keepAliveMs,
        connectionsCheckingInterval: 1_000,
      },
      (request, response) => void this.#serve(request, response),
    )
    server.maxConnections = maxConnections
    server.setTimeout(idleMs)
    return server
  }

  async #serve({ method, url }: IncomingMessage, response: ServerResponse): Promise<void> {
    // Bodies are not read.
    if (url?.split('?', 1)[0] !== '/metrics') return answer(response, 404, 'Not found. Metrics are at /metrics\n')
    if (method !== 'GET' && method !== 'HEAD') {
      response.setHeader('allow', 'GET, HEAD')
      return answer(response, 405, 'Only GET and HEAD are answered here\n')
    }
    try {
      answer(response, 200, await this.#text())
    } catch {
      answer(response, 500, 'The metrics could not be collected\n')
    }
  }
}

function answer(response: ServerResponse, status: number, text: string): void {
  response.writeHead(status, { 'content-type': contentType, 'content-length': Buffer.byteLength(text) }).end(text)
}
