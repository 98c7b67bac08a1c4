import type { AdapterPayload } from 'oidc-provider'
import { networkOfRequest } from '../base/networks.ts'
import type { RequestContext } from '../base/request.ts'
import type { Store } from '../store/store.ts'
import type { ReadRecord, SealedRecords } from './sealed-records.ts'

/** Path of the page on which people type the code that a device shows, at the root. */
export const devicePath = '/device'

/** Codes that people type: eight letters, without vowels so that they spell nothing. `typed`: without the hyphen. */
export const userCodes = { charset: 'base-20', mask: '****-****', typed: /^[BCDFGHJKLMNPQRSTVWXZ]{8}$/ } as const

/** Life of a code in seconds. */
export const deviceSeconds = 600

/** Seconds between two polls of a device (RFC 8628, 3.2). */
export const pollSeconds = 5

/** Time in ms within which a second poll is too early: shorter than the interval, because networks are uneven. */
const turnMs = 4_000

/** Time in ms for which a code is kept after its life, so that its device learns that it has expired. */
const expiredMs = 600_000

/** Where a code was asked for. */
export interface Terminal {
  /** IP address, as it is shown; absent if it is unknown. */
  readonly ip?: string | undefined
  /** Network, for comparing; absent if it cannot be told. */
  readonly network?: string | undefined
  readonly userAgent: string
}

/** The terminal of a request for a code. */
export function terminalOf(request: RequestContext | undefined): Terminal | undefined {
  return request && { ip: request.ip, network: networkOfRequest(request), userAgent: request.userAgent }
}

/** A code, as the library has it. */
interface StoredCode {
  readonly payload: AdapterPayload
  /** When its device looked at it last, in epoch milliseconds. */
  readonly polledAt?: number
}

/** A code that has not been decided on. */
export interface PendingCode {
  readonly id: string
  readonly userCode: string
  readonly payload: AdapterPayload
}

interface CodeParts {
  readonly records: SealedRecords
  readonly store: Store
}

const codeKind = 'DeviceCode'
const userCodeKind = 'DeviceUserCode'

/**
 * The codes of devices (RFC 8628): each by the device's own code, a secret, and while it waits for a decision also by
 * the code that people type.
 */
export class DeviceCodes {
  readonly #parts: CodeParts

  constructor(parts: CodeParts) {
    this.#parts = parts
  }

  /** Stores a new code. Resolves with false if its code for people is that of another. */
  async add(id: string, payload: AdapterPayload): Promise<boolean> {
    const { records } = this.#parts
    const life = { ttlMs: deviceSeconds * 1000 }
    const typed = { kind: userCodeKind, id: String(payload.userCode), record: { id }, life }
    if (!(await records.create(typed))) return false
    const record: StoredCode = { payload }
    return await records.create({ kind: codeKind, id, record, life: { ttlMs: life.ttlMs + expiredMs } })
  }

  /** The code of a device, also after its life; `undefined` if it is used. */
  async find(id: string): Promise<AdapterPayload | undefined> {
    return (await this.#read(id))?.record.payload
  }

  /**
   * The code of a device that looks whether it has been decided on; `too early` if it looked in the last four seconds.
   * `undefined` if it is used.
   */
  async poll(id: string): Promise<AdapterPayload | 'too early' | undefined> {
    for (;;) {
      const found = await this.#read(id)
      if (found === undefined) return undefined
      const { payload, polledAt = 0 } = found.record
      const now = this.#parts.store.now()
      if (Math.abs(now - polledAt) < turnMs) return 'too early'
      if (await this.#replace(found, id, { payload, polledAt: now })) return payload
    }
  }

  /** Uses a code. Of any number of callers at once exactly one gets it; the others get `undefined`. */
  async take(id: string): Promise<AdapterPayload | undefined> {
    const payload = await this.find(id)
    return (await this.#parts.records.remove(codeKind, id)) ? payload : undefined
  }

  /** The code that waits for a decision, by the typed code in canonical form; `undefined` if there is none. */
  async findPending(userCode: string): Promise<PendingCode | undefined> {
    const typed = await this.#parts.records.find<{ readonly id: string }>(userCodeKind, userCode)
    const id = typed?.record.id
    const found = id === undefined ? undefined : await this.#readPending(id)
    return id === undefined || found === undefined ? undefined : { id, userCode, payload: found.record.payload }
  }

  /** Writes a decision into a code, once. Resolves with false if there was another meanwhile. */
  async decide({ id, userCode }: PendingCode, decision: AdapterPayload): Promise<boolean> {
    for (;;) {
      const found = await this.#readPending(id)
      if (found === undefined) return false
      const { payload, ...others } = found.record
      // Its device can look meanwhile, which changes the record, too.
      if (await this.#replace(found, id, { ...others, payload: { ...payload, ...decision } })) break
    }
    await this.#parts.records.remove(userCodeKind, userCode)
    return true
  }

  async #read(id: string): Promise<ReadRecord<StoredCode> | undefined> {
    return await this.#parts.records.find<StoredCode>(codeKind, id)
  }

  /** A code that waits for a decision. */
  async #readPending(id: string): Promise<ReadRecord<StoredCode> | undefined> {
    const found = await this.#read(id)
    const { accountId, error, exp = 0 } = found?.record.payload ?? {}
    const isDecided = accountId !== undefined || error !== undefined
    return isDecided || exp * 1000 <= this.#parts.store.now() ? undefined : found
  }

  async #replace(found: ReadRecord<StoredCode>, id: string, record: StoredCode): Promise<boolean> {
    const { records, store } = this.#parts
    const ttlMs = Math.max(1, (record.payload.exp ?? 0) * 1000 + expiredMs - store.now())
    return await records.replace(found, { kind: codeKind, id, record, life: { ttlMs } })
  }
}
