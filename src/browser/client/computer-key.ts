import type { DesktopOrder } from '../../shared/orders.ts'

/**
 * Longest wait for the browser's database, in milliseconds. Some browsers never answer, and an order can do without.
 */
const patienceMs = 1000

const databaseName = 'countersign'
const storeName = 'computer-keys'

const utf8 = new TextEncoder()

const algorithm = { name: 'ECDSA', namedCurve: 'P-256' } as const

/** The key pair in the form in which it is used. */
interface KeptKey {
  /** Cannot be exported. */
  readonly privateKey: CryptoKey
  /** SubjectPublicKeyInfo (RFC 5480) of 91 bytes, base64url. */
  readonly publicKey: string
}

/**
 * The key by which a service knows this computer again: a P-256 key pair in the browser's IndexedDB, one for each
 * service. It is made when it is first needed and lasts until the site's data is cleared. No script can read the
 * private key.
 *
 * There is none without WebCrypto (pages over plain http), without IndexedDB (outside of browsers, and in some private
 * windows) or if the browser takes too long.
 */
export class ComputerKey {
  readonly #baseUrl: string
  #kept: KeptKey | undefined

  /** `baseUrl` is the address of the service; empty for the page's own origin. */
  constructor(baseUrl: string) {
    this.#baseUrl = baseUrl
  }

  /** The public key, which is made at the first call: SubjectPublicKeyInfo of 91 bytes, base64url. Never rejects. */
  async publicKey(): Promise<string | undefined> {
    return (await this.#key(true))?.publicKey
  }

  /**
   * Proof for FinalizeOrder that this computer has the private key: 64 bytes, base64url. `undefined` if there is no
   * key.
   */
  async prove({ orderId, desktopToken }: DesktopOrder): Promise<string | undefined> {
    const key = await this.#key(false)
    if (key === undefined) return undefined
    const tokenHash = base64url(new Uint8Array(await crypto.subtle.digest('SHA-256', utf8.encode(desktopToken))))
    const text = utf8.encode(`countersign.v1 finalize\n${orderId}\n${tokenHash}`)
    return base64url(new Uint8Array(await crypto.subtle.sign({ name: 'ECDSA', hash: 'SHA-256' }, key.privateKey, text)))
  }

  /** The key; a new one if there is none and `make` is set. */
  async #key(make: boolean): Promise<KeptKey | undefined> {
    this.#kept ??= await withPatience(keyOf(this.#baseUrl, make))
    return this.#kept
  }
}

/** What `work` resolves with; `undefined` if it fails, or takes longer than {@link patienceMs}. */
async function withPatience<T>(work: Promise<T>): Promise<T | undefined> {
  let timer: ReturnType<typeof setTimeout> | undefined
  const timeUp = new Promise<undefined>((resolve) => {
    timer = setTimeout(() => resolve(undefined), patienceMs)
  })
  try {
    return await Promise.race([work, timeUp])
  } catch {
    return undefined
  } finally {
    clearTimeout(timer)
  }
}

async function keyOf(baseUrl: string, make: boolean): Promise<KeptKey | undefined> {
  // On pages over plain http, browsers have IndexedDB, but no WebCrypto.
  if (globalThis.indexedDB === undefined || globalThis.crypto?.subtle === undefined) return undefined
  const name = new URL(baseUrl, location.origin).href.replace(/\/$/, '')
  const database = await openDatabase()
  try {
    const keys = database.transaction(storeName).objectStore(storeName)
    const kept = await answerOf<CryptoKeyPair | undefined>(keys.get(name))
    const pair = kept ?? (make ? await makePair(database, name) : undefined)
    if (pair === undefined) return undefined
    const publicKey = await crypto.subtle.exportKey('spki', pair.publicKey)
    return { privateKey: pair.privateKey, publicKey: base64url(new Uint8Array(publicKey)) }
  } finally {
    database.close()
  }
}

async function openDatabase(): Promise<IDBDatabase> {
  const request = indexedDB.open(databaseName, 1)
  request.onupgradeneeded = () => void request.result.createObjectStore(storeName)
  return await answerOf(request)
}

/** Makes a key pair and stores it. If another tab was faster, the pair is the other tab's. */
async function makePair(database: IDBDatabase, name: string): Promise<CryptoKeyPair> {
  const made = await crypto.subtle.generateKey(algorithm, false, ['sign', 'verify'])
  const transaction = database.transaction(storeName, 'readwrite')
  const stored = new Promise<void>((resolve, reject) => {
    transaction.oncomplete = () => resolve()
    transaction.onabort = () => reject(transaction.error)
  })
  const store = transaction.objectStore(storeName)
  // In one transaction, so that no other tab can store a pair between the two steps.
  const first: CryptoKeyPair | undefined = await answerOf(store.get(name))
  if (first !== undefined) return first
  store.add(made, name)
  await stored
  return made
}

function answerOf<T>(request: IDBRequest<T>): Promise<T> {
  return new Promise((resolve, reject) => {
    request.onsuccess = () => resolve(request.result)
    request.onerror = () => reject(request.error)
  })
}

/** Bytes in base64url without padding (RFC 4648, section 5). */
export function base64url(bytes: Uint8Array): string {
  return btoa(String.fromCharCode(...bytes))
    .replace(/\+/g, '-')
    .replace(/\//g, '_')
    .replace(/=+$/, '')
}
