import type { CountersignOptions } from '../config.ts'
import { hostOnLan, optionsOnLan } from '../lan.ts'

/** Makes a service of options, for the local network if `lan` is there. */
export type MakeService<Service> = (
  options: CountersignOptions,
  lan: { readonly host: string | undefined } | undefined,
) => Promise<Service>

/** Makes a service; for the local network if `hosts` are this machine's in it. */
export async function madeService<Service>(
  make: MakeService<Service>,
  options: CountersignOptions,
  hosts: readonly string[] | undefined,
): Promise<Service> {
  if (hosts === undefined) return await make(options, undefined)
  if (options.host !== undefined && !/^(0\.0\.0\.0|::)$/.test(options.host)) {
    options.logger?.warn(`HOST (${options.host}) is not used: with --lan the service listens on all interfaces`)
  }
  return await make(optionsOnLan(options), { host: hostOnLan(options, hosts) })
}
