/** Where a token is kept: the part of `localStorage` that the client uses. */
export interface TokenStorage {
  getItem(key: string): string | null
  setItem(key: string, value: string): void
  removeItem(key: string): void
}

/** Where the session token is kept, and under which key. */
export interface TokenStoreOptions {
  /** Default: `localStorage`. */
  readonly storage?: TokenStorage | undefined
  /** Key of the token in the storage. Default countersign.token. */
  readonly tokenStorageKey?: string | undefined
}

const defaultKey = 'countersign.token'

/**
 * Keeps the session token. Where the storage is full, blocked or missing (private windows, a browser's privacy settings, a
 * server), the token is kept in memory, for as long as the page lives; nothing here throws.
 */
export class TokenStore {
  readonly #given: TokenStorage | undefined
  readonly #key: string
  /** Only what the storage did not take. */
  #unsaved: string | undefined

  constructor({ storage, tokenStorageKey = defaultKey }: TokenStoreOptions = {}) {
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

  /** Clears the token if it is still this one: another tab may have signed in meanwhile. */
  forget(token: string | undefined): void {
    if (token !== undefined && this.read() === token) this.clear()
  }

  #try<T>(use: (storage: TokenStorage) => T): T | undefined {
    try {
      // Reading the property is enough to throw where storage is blocked. Only in pages: Node has a storage of this name too,
      // and what it keeps would belong to all users of a server.
      const storage = this.#given ?? (globalThis.document === undefined ? undefined : globalThis.localStorage)
      return storage === undefined || storage === null ? undefined : use(storage)
    } catch {
      return undefined
    }
  }
}

/** The session token that was kept at sign-in; `undefined` when there is none. */
export function readStoredToken(options?: TokenStoreOptions): string | undefined {
  return new TokenStore(options).read()
}

/** Removes the session token from this browser. It ends no session: sign out for that. */
export function clearStoredToken(options?: TokenStoreOptions): void {
  new TokenStore(options).clear()
}
