import { Keyring } from '../base/token.ts'
import { type AccessTokenAlgorithm, deriveSigningKeys, type LiveSigningKeys } from '../core/access-tokens.ts'
import { type CountersignOptions, resolveSettings, type Settings } from './config.ts'

/** The options that can be replaced while the service runs. */
export type ReplaceableOptions = Pick<CountersignOptions, 'secret' | 'orderStartKeys'>

const replaceable: ReadonlySet<string> = new Set<keyof ReplaceableOptions>(['secret', 'orderStartKeys'])

/** Whether the option of this name can be replaced while the service runs. */
export function isReplaceable(name: string): name is keyof ReplaceableOptions {
  return replaceable.has(name)
}

/** The secrets of a running service, which others can take the place of. */
export class LiveSecrets {
  #orderStartKeys: readonly string[] | undefined
  #secret: readonly string[] | undefined
  readonly #keyring: Keyring
  readonly #signingKeys: LiveSigningKeys | undefined
  readonly #algorithm: AccessTokenAlgorithm

  constructor(
    settings: Pick<Settings, keyof ReplaceableOptions | 'accessTokens'>,
    keyring: Keyring,
    signingKeys: LiveSigningKeys | undefined,
  ) {
    this.#secret = settings.secret
    this.#orderStartKeys = settings.orderStartKeys
    this.#algorithm = settings.accessTokens.algorithm
    this.#keyring = keyring
    this.#signingKeys = signingKeys
  }

  /** The keys that backends start orders with; `undefined` if pages start them. */
  get orderStartKeys(): readonly string[] | undefined {
    return this.#orderStartKeys
  }

  /**
   * Checks other secrets and makes what follows from them. Resolves with what puts all of it in force in one step and
   * returns the options that changed. Rejects with a `TypeError` of one line if something does not fit.
   */
  async prepare(options: ReplaceableOptions): Promise<() => (keyof ReplaceableOptions)[]> {
    const other = Object.keys(options).find((name) => !isReplaceable(name))
    if (other !== undefined) throw new TypeError(`${other} cannot be replaced while the service runs; restart it`)
    const { secret, orderStartKeys } = resolveSettings(options)
    if (orderStartKeys !== undefined && this.#orderStartKeys === undefined) {
      throw new TypeError('orderStartKeys (COUNTERSIGN_ORDER_START_KEYS) was not set at the start; restart the service')
    }
    const signingKeys = secret && this.#signingKeys && (await deriveSigningKeys(new Keyring(secret), this.#algorithm))
    return () => {
      const changed: (keyof ReplaceableOptions)[] = []
      if (secret !== undefined && !isSame(secret, this.#secret)) {
        this.#secret = secret
        this.#keyring.replace(secret)
        if (signingKeys !== undefined) this.#signingKeys?.replace(signingKeys)
        changed.push('secret')
      }
      if (orderStartKeys !== undefined && !isSame(orderStartKeys, this.#orderStartKeys)) {
        this.#orderStartKeys = orderStartKeys
        changed.push('orderStartKeys')
      }
      return changed
    }
  }
}

/** Not in constant time: both lists come from the operator. */
function isSame(one: readonly string[], other: readonly string[] | undefined): boolean {
  return one.length === other?.length && one.every((entry, index) => entry === other[index])
}
