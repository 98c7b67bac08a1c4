import type { Countersign } from '../countersign.ts'
import { isLoopbackHost } from '../origin.ts'
import { version } from '../version.ts'

/** A service that the command has started. */
export interface Start {
  readonly service: Pick<Countersign, 'publicUrl' | 'description'>
  /** Port that it listens on. */
  readonly port: number
  /** Whether it was started with `--lan`. */
  readonly lan: boolean
  /** Number of workers; absent if this process serves alone. */
  readonly workers?: number | undefined
  /** Whether the port takes TLS. */
  readonly tls: boolean
  /** Hosts of this machine in its local networks, the likeliest to be reached first. */
  readonly hosts: readonly string[]
}

/**
 * How phones in the local network reach the service, or what to start it with so that they do. `undefined` if publicUrl is an
 * address of the operator's own.
 */
export function networkText({ service: { publicUrl }, port, lan, tls, hosts }: Start): string | undefined {
  const all = hosts.map((host) => new URL(`${tls ? 'https' : 'http'}://${host}:${port}`).origin)
  const others = all.filter((address) => address !== publicUrl)
  if (!lan) {
    if (!isLoopbackHost(new URL(publicUrl).hostname)) return undefined
    const [first] = all
    if (first === undefined) return 'none, because this machine is in no network'
    return `${first} for phones in the same network, if you start with: npm start -- --lan`
  }
  if (others.length === all.length) return `${publicUrl}, as COUNTERSIGN_PUBLIC_URL says`
  const choice = `; if they cannot open it, set COUNTERSIGN_PUBLIC_URL to ${others.join(' or ')}`
  return `${publicUrl} for phones in the same network${others.length === 0 ? '' : choice}`
}

/** What a person at a terminal reads at the start. */
export function banner(start: Start): string {
  const { service, port, lan, workers } = start
  const { description, publicUrl } = service
  // Browsers keep WebCrypto for https and loopback names, so this computer is better off with one of those.
  const here = lan && publicUrl.startsWith('http:') ? new URL(`http://localhost:${port}`).origin : publicUrl
  const network = networkText(start)
  return `
  Countersign ${version} is ready

  Address:  ${here}${network === undefined ? '' : `\n  Network:  ${network}`}
  Store:    ${description.store}
  Wallets:  ${description.adapters.join(', ')} (${description.verifier} Ed25519)${workers === undefined ? '' : `\n  Workers:  ${workers}`}

  Next:     open ${here} in a browser
            npm run demo   shows every step of a sign-in in this terminal
            docs/          has the calls, the settings and the errors
  Stop:     Ctrl+C

`
}
