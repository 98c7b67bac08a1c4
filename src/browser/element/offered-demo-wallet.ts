import { isLoopbackHost } from '../../shared/origin.ts'
import { type ServiceOptions, serviceOptionsPath } from '../../shared/service-options.ts'
import { defaultTimeoutMs } from '../client/call.ts'
import type { ServiceAddress } from '../client/calls.ts'
import { loadOnDemand } from '../client/page.ts'
import { defaultBasePath } from '../client/rest-api.ts'
import type { FoundWallet } from '../wallets/found.ts'

/**
 * The demo wallet, for developers: offered if the service says so, and only if page and service are both at http
 * addresses that only this computer can reach. A page or a service behind a tunnel has users, and anything on their
 * pages can read the wallet's key. Its code is loaded only if it is offered.
 */
export async function offeredDemoWallet(
  service: ServiceAddress,
  { adapterIds, name }: { readonly adapterIds: readonly string[] | undefined; readonly name: string },
): Promise<FoundWallet | undefined> {
  if (![location.href, new URL(service.baseUrl, location.href).href].every(isOnThisComputer)) return undefined
  try {
    const { demoWallet, adapters } = await optionsOf(service)
    if (!demoWallet) return undefined
    const { openDemoWallet } = await loadOnDemand(() => import('../wallets/demo-wallet.ts'))
    const accepted = adapters.filter((id) => adapterIds === undefined || adapterIds.includes(id))
    const wallet = accepted.map((id) => openDemoWallet(id)).find((opened) => opened !== undefined)
    return wallet && { id: 'demo', name, kind: 'demo', adapterId: wallet.adapterId, connect: () => wallet }
  } catch {
    // The service does not answer: then there is no such wallet.
    return undefined
  }
}

/** The service's options. They are the same for every caller: the answer allows no credentials. */
async function optionsOf({ baseUrl, basePath = defaultBasePath }: ServiceAddress): Promise<ServiceOptions> {
  const address = baseUrl.replace(/\/+$/, '') + basePath + serviceOptionsPath
  const answer = await fetch(address, { credentials: 'omit', signal: AbortSignal.timeout(defaultTimeoutMs) })
  return (await answer.json()) as ServiceOptions
}

function isOnThisComputer(address: string): boolean {
  const { protocol, hostname } = new URL(address)
  return protocol === 'http:' && isLoopbackHost(hostname)
}
