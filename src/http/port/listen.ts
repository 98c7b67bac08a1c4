import type { AddressInfo, Server } from 'node:net'

/** Connections that may wait for accept(); the system may allow fewer. */
const backlog = 4096

/** Most attempts to find a port that is free on both loopback addresses. */
const maxPortAttempts = 10

/** Listening on the host failed. The message is one line for the operator: the problem and what to change. */
export class ListenError extends Error {
  override readonly name = 'ListenError'
  /** The problem. `countersign doctor` shows it apart from the advice. */
  readonly problem: string
  /** What to change, as a sentence; `undefined` if `problem` says it. */
  readonly advice: string | undefined

  constructor(problem: string, { advice, cause }: { readonly advice?: string; readonly cause?: unknown } = {}) {
    super(advice === undefined ? problem : `${problem}. ${advice}`, { cause })
    this.problem = problem
    this.advice = advice
  }
}

/** Options of {@link listenOn}. */
export interface Listening<S extends Server> {
  /** 0 takes a free port. */
  readonly port: number
  /** An address or name of this machine. `localhost` means 127.0.0.1 and, if the machine has it, ::1. */
  readonly host: string
  /** The settings of port and host, for error messages. Default PORT and HOST. */
  readonly settings?: { readonly port: string; readonly host: string }
  /** Makes a server for one address. A server that failed to listen is dropped. */
  readonly createServer: () => S
}

/**
 * Listens on every address of a host, on the same port. Resolves with one listening server for each address, at least
 * one.
 *
 * @throws ListenError if it cannot; then no server is left listening.
 */
export async function listenOn<S extends Server>(listening: Listening<S>): Promise<[S, ...S[]]> {
  const { port, host } = listening
  for (let attempt = 1; ; attempt++) {
    try {
      if (host === 'localhost') return await listenOnLoopback(listening)
      return [await listenOnAddress(listening)]
    } catch (error) {
      // A port that is free on 127.0.0.1 can be taken on ::1.
      if (port !== 0 || errorCode(error) !== 'EADDRINUSE' || attempt === maxPortAttempts) {
        throw toListenError(error, listening)
      }
    }
  }
}

/** The port of a server that listens. */
export function portOf(server: Server): number {
  return (server.address() as AddressInfo).port
}

/** Browsers try either address for the name localhost. */
async function listenOnLoopback<S extends Server>(listening: Listening<S>): Promise<[S, ...S[]]> {
  const ipv4 = await listenOnAddress({ ...listening, host: '127.0.0.1' })
  try {
    return [ipv4, await listenOnAddress({ ...listening, host: '::1', port: portOf(ipv4) })]
  } catch (error) {
    // The machine has no IPv6.
    if (/^(EADDRNOTAVAIL|EAFNOSUPPORT)$/.test(errorCode(error) ?? '')) return [ipv4]
    ipv4.close()
    throw error
  }
}

function listenOnAddress<S extends Server>({ port, host, createServer }: Listening<S>): Promise<S> {
  const server = createServer()
  return new Promise((resolve, reject) => {
    server.once('error', reject)
    server.listen({ port, host, backlog }, () => {
      server.off('error', reject)
      // Later errors are connections that the system could not accept, for lack of memory for example. Without a
      // listener they would end the process.
      server.on('error', () => {})
      resolve(server)
    })
  })
}

function toListenError(cause: unknown, { port, host, settings = ownSettings }: Listening<Server>): ListenError {
  const known: Readonly<Record<string, readonly [problem: string, advice: string]>> = {
    EADDRINUSE: [
      `port ${port} on ${host} is in use by another program`,
      `Stop it, or set another port (${settings.port}).`,
    ],
    EACCES: [`port ${port} on ${host} is not open to this user`, `Set port (${settings.port}) to 1024 or higher.`],
    EADDRNOTAVAIL: [
      `${host} is not an address of this machine`,
      `Set host (${settings.host}) to localhost, 0.0.0.0 or an address it has.`,
    ],
    ENOTFOUND: [
      `the name ${host} leads to no address`,
      `Set host (${settings.host}) to localhost, 0.0.0.0 or an address of this machine.`,
    ],
  }
  const [problem, advice] = known[errorCode(cause) ?? ''] ?? [
    `cannot listen on port ${port} (${settings.port}) of ${host} (${settings.host}): ${cause}`,
  ]
  return new ListenError(problem, { ...(advice === undefined ? {} : { advice }), cause })
}

/** The settings of the service's own port. */
const ownSettings = { port: 'PORT', host: 'HOST' }

/** The `code` of an error that Node made, such as EADDRINUSE; undefined if it has none. */
export function errorCode(error: unknown): string | undefined {
  return error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : undefined
}
