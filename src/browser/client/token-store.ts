/** Storage for the session token: the part of `localStorage` that the client uses. */
export interface TokenStorage {
  getItem(key: string): string | null
  setItem(key: string, value: string): void
  removeItem(key: string): void
}

/** Options for storing the session token. */
export interface TokenStoreOptions {
  /** Storage for the session token. Default: `localStorage`. */
  readonly storage?: TokenStorage | undefined
  /** Key of the session token in the storage. Default countersign.token. */
  readonly tokenStorageKey?: string | undefined
}

/** Key of the session token in the storage, unless the options say otherwise. */
export const defaultTokenKey = 'countersign.token'

/**
 * Stores the session token. If the storage is full, blocked or missing (private windows, a browser's privacy settings,
 * a server), the token stays in memory until the page is closed. Nothing here throws.
 */
export class TokenStore {
  readonly #given: TokenStorage | undefined
  readonly #key: string
  /** Fallback if the storage is unavailable. */
  #unsaved: string | undefined

  constructor({ storage, tokenStorageKey = defaultTokenKey }: TokenStoreOptions = {}) {
    this.#given = storage
    this.#key = tokenStorageKey
  }

  read(): string | undefined {
    return this.#unsaved ?? this.#try((storage) => storage.getItem(this.#key)) ?? undefined
  }

  save(token: string): void {
    this.#unsaved = token
    this.#try((storage) => {
      storage.setItem(this.#key, token)
      this.#unsaved = undefined
    })
  }

  clear(): void {
    this.#unsaved = undefined
    this.#try((storage) => storage.removeItem(this.#key))
  }

  /** Removes the token if it is still this one: another tab may have signed in since. Returns whether it was. */
  forget(token: string | undefined): boolean {
    const isSame = token !== undefined && this.read() === token
    if (isSame) this.clear()
    return isSame
  }

  #try<T>(use: (storage: TokenStorage) => T): T | undefined {
    try {
      // If storage is blocked, already reading the property throws. Only in pages: Node has a `localStorage` too, which
      // all users of a server would share.
      const storage = this.#given ?? (globalThis.document === undefined ? undefined : globalThis.localStorage)
      return storage === undefined || storage === null ? undefined : use(storage)
    } catch {
      return undefined
    }
  }
}

/**
 * Stores a new session's token. Without `autoPersistToken`, removes an older one, which would take precedence over the
 * cookie.
 */
export function keepToken(tokens: TokenStore, token: string, autoPersistToken = true): void {
  if (autoPersistToken) tokens.save(token)
  else tokens.clear()
}

/** The stored session token, or `undefined` if there is none. */
export function readStoredToken(options?: TokenStoreOptions): string | undefined {
  return new TokenStore(options).read()
}

/** Removes the stored session token. The session itself goes on; `signOut` ends it. */
export function clearStoredToken(options?: TokenStoreOptions): void {
  new TokenStore(options).clear()
}
