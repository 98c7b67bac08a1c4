import type { OriginRules } from '../core/origin-policy.ts'
import { isLoopbackHost } from '../shared/origin.ts'
import type { Settings } from './config.ts'

/** How the service is reached in the local network, with `--lan`. */
export interface Lan {
  readonly host: string | undefined
}

/** The address of a service, which follows from its port unless publicUrl is set. */
export class ServiceAddress {
  /** The port that the service listens on; before it listens, that of the settings. */
  port: number
  readonly #settings: AddressSettings
  readonly #lan: Lan | undefined

  constructor(settings: AddressSettings, lan: Lan | undefined) {
    this.#settings = settings
    this.#lan = lan
    this.port = settings.port
  }

  /** The origin that people reach the service by. */
  get publicUrl(): string {
    // Without the port if it is the scheme's own, as browsers write it.
    const { publicUrl } = this.#settings
    return publicUrl ?? new URL(`${this.#scheme}://${this.#lan?.host ?? 'localhost'}:${this.port}`).origin
  }

  /** Whether browsers send cookies marked as secure. */
  get isSecure(): boolean {
    return this.publicUrl.startsWith('https:')
  }

  /** Whether it is for trying the service out: at a loopback name, or by http in the local network. */
  get isForTrying(): boolean {
    const isLocal = isLoopbackHost(new URL(this.publicUrl).hostname)
    return isLocal || (this.#lan !== undefined && !this.isSecure)
  }

  /** Whether it is a loopback name, or one for trying the service out in the local network. */
  get isLocal(): boolean {
    return this.#lan !== undefined || isLoopbackHost(new URL(this.publicUrl).hostname)
  }

  /**
   * The origins that are trusted: those of the settings, or else the service's own and, locally, its loopback names.
   */
  get originRules(): OriginRules {
    const { enforceOrigin, trustedOrigins } = this.#settings
    const { publicUrl } = this
    const trusted = trustedOrigins ?? [publicUrl, ...(this.isLocal ? this.#loopbackOrigins() : [])]
    return { enforce: enforceOrigin, own: publicUrl, trusted }
  }

  /** What the port itself speaks. A proxy in front may speak another. */
  get #scheme(): 'http' | 'https' {
    return this.#settings.tls.cert === undefined ? 'http' : 'https'
  }

  #loopbackOrigins(): string[] {
    return ['localhost', '127.0.0.1', '[::1]'].map((name) => new URL(`${this.#scheme}://${name}:${this.port}`).origin)
  }
}

type AddressSettings = Pick<Settings, 'publicUrl' | 'port' | 'tls' | 'enforceOrigin' | 'trustedOrigins'>

/** Where a service is. `publicUrl` is empty if it is not known. */
type ServicePlace = Pick<ServiceAddress, 'publicUrl' | 'isLocal'>

type ConfirmationCodeSetting = Settings['confirmationCode']

/** How orders use their code: as the option says, or else `return` wherever strangers could relay orders. */
export function confirmationCodeAt(given: ConfirmationCodeSetting, { isLocal }: ServicePlace): 'compare' | 'return' {
  return given ?? (isLocal ? 'compare' : 'return')
}

/** The line that a start logs, unless the place is local or the option is `return`; then `undefined`. */
export function confirmationCodeLine(
  given: ConfirmationCodeSetting,
  { publicUrl, isLocal }: ServicePlace,
): string | undefined {
  if (isLocal || given === 'return') return undefined
  const name = 'confirmationCode (COUNTERSIGN_CONFIRMATION_CODE)'
  const at = publicUrl === '' ? 'an address that is not known to be a loopback name' : publicUrl
  if (given === 'compare') {
    return `${name} is compare, which stops no relayed order, at ${at}; set it to return (docs/cross-device-security.md)`
  }
  return (
    `${name} is return, the default at ${at}: computers ask for the code that the phone shows; set the option to ` +
    'silence this line'
  )
}
