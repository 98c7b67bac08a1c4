import type { Keyring } from '../base/token.ts'
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

  constructor({ secret, orderStartKeys }: Pick<Settings, keyof ReplaceableOptions>, keyring: Keyring) {
    this.#secret = secret
    this.#orderStartKeys = orderStartKeys
    this.#keyring = keyring
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
    const isNew = secret !== undefined && !isSame(secret, this.#secret)
    const replaceSecret = isNew ? await this.#keyring.prepare(secret) : undefined
    return () => {
      const changed: (keyof ReplaceableOptions)[] = []
      if (replaceSecret !== undefined) {
        this.#secret = secret
        replaceSecret()
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
