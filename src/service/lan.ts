import { type NetworkInterfaceInfo, networkInterfaces } from 'node:os'
import { type CountersignOptions, isHttps } from './config.ts'

/** A network interface by name, as `networkInterfaces` of node:os has them. */
export type Interfaces = Readonly<Record<string, readonly NetworkInterfaceInfo[] | undefined>>

/**
 * Interfaces of containers, virtual machines and tunnels, by name. A phone in the local network rarely reaches those.
 */
const virtualName = new RegExp(
  '^(docker|br-|veth|virbr|vmnet|vboxnet|cni|flannel|cali|lxc|lxd|podman|bridge\\d|utun|tun|tap|wg|tailscale|zt|ppp)' +
    '|vEthernet|VirtualBox|VMware',
  'i',
)

const privateIpv4 = /^(10|192\.168|172\.(1[6-9]|2\d|3[01]))\./
const linkLocalIpv4 = /^169\.254\./
/** URLs have no place for the interface that such an address needs. */
const linkLocalIpv6 = /^fe[89ab]/i

/**
 * Hosts, as URLs spell them, by which others in the local network reach this machine, the likeliest first: private IPv4
 * addresses first, what belongs to containers and tunnels after that, addresses that the machine gave itself (169.254)
 * last. Empty if the machine is in no network.
 */
export function lanHosts(interfaces: Interfaces = networkInterfaces()): string[] {
  const found = Object.entries(interfaces).flatMap(([name, addresses = []]) =>
    addresses
      .filter(({ internal, address }) => !internal && !linkLocalIpv6.test(address))
      .map(({ family, address }) => {
        const misfits = [
          linkLocalIpv4.test(address),
          virtualName.test(name),
          family !== 'IPv4',
          !privateIpv4.test(address),
        ]
        return {
          host: family === 'IPv4' ? address : `[${address}]`,
          // Each misfit weighs more than all after it.
          rank: misfits.reduce((rank, misfit) => rank * 2 + Number(misfit), 0),
        }
      }),
  )
  return [...new Set(found.toSorted((one, other) => one.rank - other.rank).map(({ host }) => host))]
}

/** Address to listen on for all of the machine's interfaces: `::` takes IPv4 too, but needs a machine with IPv6. */
export function everyInterface(interfaces: Interfaces = networkInterfaces()): string {
  const hasIpv6 = Object.values(interfaces).some((addresses) => addresses?.some(({ family }) => family === 'IPv6'))
  return hasIpv6 ? '::' : '0.0.0.0'
}

/**
 * The options with `--lan`: the service listens on all interfaces and offers the demo wallet, unless the option says
 * no, or publicUrl is https.
 */
export function optionsOnLan(options: CountersignOptions): CountersignOptions {
  const host = everyInterface()
  if (options.pages === false) return { ...options, host }
  const pages = typeof options.pages === 'object' ? options.pages : {}
  return { ...options, host, pages: { ...pages, demoWallet: pages.demoWallet ?? !isHttps(options) } }
}

/** The first of the hosts. Throws if there is none and publicUrl is not set: then the service could not be reached. */
export function hostOnLan({ publicUrl }: CountersignOptions, [host]: readonly string[]): string | undefined {
  if (host === undefined && publicUrl === undefined) {
    throw new TypeError('--lan needs a network, and this machine is in none; connect it to one, or start without --lan')
  }
  return host
}
