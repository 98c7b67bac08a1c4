import { createPublicKey, hash, type KeyObject, verify } from 'node:crypto'
import type { AuditTrail } from '../../base/audit.ts'
import { changeRecord, parseRecord, recordText } from '../../base/record.ts'
import type { RequestContext } from '../../base/request.ts'
import { hashToken } from '../../base/token.ts'
import { invalidField, refused } from '../../shared/errors.ts'
import type { KnownComputer } from '../../shared/session.ts'
import type { Store } from '../../store/store.ts'
import type { Session } from '../users/host.ts'
import { type ProvenIdentity, type WalletIdentity, walletOf } from '../wallet/wallet.ts'
import { rulesOf } from './kinds/recipes.ts'
import { identityOf, newestTransition, type OrderApproval, type OrderRecord } from './order.ts'

/** A known computer as it is stored. */
export type StoredComputer = Omit<KnownComputer, 'current'>

/** Where a computer starts orders. */
export interface ComputerSite {
  /** Name of the application. */
  readonly appName: string
  /** Origin of the orders. */
  readonly origin: string
}

/** The computer that finalizes an order. */
export interface FinalizingComputer {
  readonly ip: string
  readonly userAgent: string
}

/** What is stored of a wallet. Times are epoch milliseconds. */
interface ComputersRecord {
  /** Newest first. */
  readonly computers: readonly StoredComputer[]
  /** Orders that make no computer known any more: they did, or were taken back. Newest first. */
  readonly orders: readonly { readonly orderId: string; readonly at: number }[]
  /** Orders whose return code was typed until then make no computer known any more. 0: all can. */
  readonly closedUntil: number
}

const noComputers: ComputersRecord = { computers: [], orders: [], closedUntil: 0 }

/** Time in ms for which a computer is known. */
const knownMs = 90 * 24 * 60 * 60_000

/**
 * Time in ms, from its return code, in which an order can make a computer known. An order is remembered, and can be
 * taken back, for ten minutes; calls in flight last another.
 */
const orderMs = 11 * 60_000

/** Most known computers of a wallet. One more takes the place of the oldest. */
const maxComputers = 20

/** Most orders that are remembered one by one for a wallet. Beyond that, those up to the oldest are all closed. */
const maxOrders = 100

/**
 * Most characters of an IP address, and of a user agent, that are stored: a record of full lists stays below 64 KiB.
 */
const maxLengths = { ip: 64, userAgent: 256 }

/**
 * Keeps which computers are known for which wallets.
 *
 * A wallet has one record, and each change is a compare-and-set on it, decided anew if another instance was faster. So
 * of calls at the same time none undoes another's, and the bounds hold.
 */
export class KnownComputers {
  readonly #store: Store
  readonly #keepsAddresses: boolean

  /** IP addresses are not kept if `addressTtlSeconds` is shorter than the time for which a computer is known. */
  constructor(store: Store, { addressTtlSeconds }: { readonly addressTtlSeconds?: number | undefined } = {}) {
    this.#store = store
    this.#keepsAddresses = addressTtlSeconds === undefined || addressTtlSeconds * 1000 >= knownMs
  }

  /**
   * The id of a computer for a wallet at a site, known or not, made of its public key. A computer that is known at one
   * site is unknown at every other: services that share a store share these records, and an attacker's computer that a
   * user let be remembered at one of them must not count at the others. Browsers have a key for each site anyway.
   */
  idOf({ adapterId, subject }: WalletIdentity, computerKey: string, { appName, origin }: ComputerSite): string {
    // Of another form than the record's key, so that neither hash can be taken for the other.
    const text = `known computer\n${adapterId}\n${computerKey}\n${appName}\n${origin}\n${subject}`
    return hash('sha256', text, 'base64url').slice(0, 22)
  }

  /** Whether a computer is known for a wallet now. */
  async isKnown(wallet: WalletIdentity, id: string): Promise<boolean> {
    return (await this.list(wallet)).some((computer) => computer.id === id)
  }

  /**
   * Makes a computer known for 90 days from `at`, the time of the return code. Once for each order: a repeated call, or
   * one after the order was taken back ({@link forgetOfOrder}), changes nothing. Nor does a call more than eleven
   * minutes after `at`.
   */
  async remember(
    wallet: WalletIdentity,
    id: string,
    { orderId, at }: { readonly orderId: string; readonly at: number },
    computer: FinalizingComputer,
  ): Promise<boolean> {
    return await this.#change(wallet, (record, now) => {
      if (at <= record.closedUntil || at <= now - orderMs) return undefined
      if (record.orders.some((order) => order.orderId === orderId)) return undefined
      const known = record.computers.find((one) => one.id === id)
      const newest: StoredComputer = {
        id,
        createdAt: Math.max(at, known?.createdAt ?? 0),
        lastUsedAt: Math.max(at, known?.lastUsedAt ?? 0),
        ...this.#described(computer),
      }
      const others = record.computers.filter((one) => one !== known).slice(0, maxComputers - 1)
      const computers = [newest, ...others].sort((a, b) => b.createdAt - a.createdAt)
      return closeOrder({ ...record, computers }, orderId, now)
    })
  }

  /**
   * Notes that a known computer finalized an order. Does nothing if it is not known any more. Does not extend its 90
   * days.
   */
  async noteUse(wallet: WalletIdentity, id: string, computer: FinalizingComputer): Promise<void> {
    await this.#change(wallet, (record, lastUsedAt) => {
      const known = record.computers.find((one) => one.id === id)
      const used = known && { ...known, lastUsedAt, ...this.#described(computer) }
      return used && { ...record, computers: record.computers.map((one) => (one === known ? used : one)) }
    })
  }

  /** The known computers of a wallet, newest first. */
  async list(wallet: WalletIdentity): Promise<StoredComputer[]> {
    const stored = await this.#store.get(keyOf(wallet))
    return stored === undefined ? [] : [...readRecord(stored.value, this.#store.now()).computers]
  }

  /** Forgets a computer. Resolves with false if it is not known. */
  async forget(wallet: WalletIdentity, id: string): Promise<boolean> {
    return await this.#change(wallet, (record) =>
      record.computers.some((one) => one.id === id) ? without(record, id) : undefined,
    )
  }

  /** Forgets all computers of a wallet but one. Orders whose return code was typed before add no computer any more. */
  async forgetOthers(wallet: WalletIdentity, keptId: string | undefined): Promise<void> {
    await this.#change(wallet, (record, now) => ({
      ...record,
      computers: record.computers.filter(({ id }) => id === keptId),
      // Their codes were typed before, so no order that was closed until now has to be remembered by itself.
      orders: record.orders.filter(({ at }) => at > now),
      closedUntil: now,
    }))
  }

  /** Forgets the computer of an order that is taken back, and keeps the order from making it known later. */
  async forgetOfOrder(wallet: WalletIdentity, id: string, orderId: string): Promise<void> {
    await this.#change(wallet, (record, now) => closeOrder(without(record, id), orderId, now))
  }

  #described({ ip, userAgent }: FinalizingComputer): FinalizingComputer {
    return {
      ip: this.#keepsAddresses ? ip.slice(0, maxLengths.ip) : '',
      userAgent: userAgent.slice(0, maxLengths.userAgent),
    }
  }

  /**
   * Changes the record of a wallet. `change` gets what of it is not over yet, and the time; it returns `undefined` to
   * change nothing, which this resolves with false for. Called again if another change was faster.
   */
  async #change(
    wallet: WalletIdentity,
    change: (record: ComputersRecord, now: number) => ComputersRecord | undefined,
  ): Promise<boolean> {
    const stored = await changeRecord(this.#store, keyOf(wallet), readRecord, (record = noComputers, now) => {
      const changed = change(record, now)
      return changed && { value: recordText(changed), life: { ttlMs: Math.max(1, endOf(changed) - now) } }
    })
    return stored !== undefined
  }
}

function keyOf({ adapterId, subject }: WalletIdentity): string {
  // Hashed, because a subject may be of any form.
  return `computers:${hash('sha256', `known computers\n${adapterId}\n${subject}`, 'base64url')}`
}

/** A stored record without what is over. */
function readRecord(text: string, now: number): ComputersRecord {
  const { computers, orders, closedUntil } = parseRecord<ComputersRecord>('list of known computers', text)
  return {
    computers: computers.filter(({ createdAt }) => now < createdAt + knownMs),
    orders: orders.filter(({ at }) => now < at + orderMs),
    closedUntil,
  }
}

/** When the last entry of a record is over. */
function endOf({ computers, orders, closedUntil }: ComputersRecord): number {
  return Math.max(
    closedUntil + orderMs,
    ...computers.map(({ createdAt }) => createdAt + knownMs),
    ...orders.map(({ at }) => at + orderMs),
  )
}

function without(record: ComputersRecord, id: string): ComputersRecord {
  return { ...record, computers: record.computers.filter((computer) => computer.id !== id) }
}

/** Keeps an order from making a computer known from now on. */
function closeOrder(record: ComputersRecord, orderId: string, now: number): ComputersRecord {
  const orders = [{ orderId, at: now }, ...record.orders.filter((order) => order.orderId !== orderId)]
  const oldest = orders[maxOrders]
  if (oldest === undefined) return { ...record, orders }
  // Covers the orders that leave the list: their codes were typed before they were closed.
  const closedUntil = Math.max(oldest.at, record.closedUntil)
  return { ...record, orders: orders.slice(0, maxOrders), closedUntil }
}

/** Settings of {@link OrderComputers}. */
interface ComputerSettings {
  /** Name of the application. */
  readonly appName: string
  /** Whether known computers need no return code. */
  readonly knownComputers: boolean
}

/** The computers that orders come from: which are known to the wallets that approve, and which become known. */
export class OrderComputers {
  readonly #known: KnownComputers | undefined
  readonly #settings: ComputerSettings
  readonly #audit: AuditTrail

  /** Without `known`, no computer is known or becomes known. */
  constructor(known: KnownComputers | undefined, settings: ComputerSettings, audit: AuditTrail) {
    this.#known = known
    this.#settings = settings
    this.#audit = audit
  }

  /** Whether the phone's user can let the computer be remembered. Only a login makes a computer known. */
  canRemember(order: OrderRecord): boolean {
    return order.returnCodes === true && rulesOf(order).remembersComputer === true && this.#counts(order)
  }

  /** What is decided when an order with return codes is approved; `undefined` for any other order. */
  async decide(
    order: OrderRecord,
    identity: ProvenIdentity,
    rememberComputer: boolean,
  ): Promise<OrderApproval | undefined> {
    if (order.returnCodes !== true) return undefined
    const id = this.#counts(order) ? this.#idFor(order, identity) : undefined
    if (this.#known === undefined || id === undefined) return { knownComputer: false, rememberComputer: false }
    const knownComputer = await this.#known.isKnown(identity, id)
    return { knownComputer, rememberComputer: rememberComputer && rulesOf(order).remembersComputer === true }
  }

  /** The id of the computer of an approved order, if it is known to the wallet or about to be. */
  idOf(order: OrderRecord): string | undefined {
    const { approval } = order
    if (approval === undefined || !(approval.knownComputer || approval.rememberComputer)) return undefined
    return this.#idFor(order, identityOf(order))
  }

  /**
   * Makes the computer known that finalized the order, or notes that it did. `session` is that of a login order. If it
   * does not lead to the wallet, no computer becomes known: the user could not find and forget it.
   */
  async note(order: OrderRecord, request: RequestContext, session?: Session): Promise<void> {
    const id = this.idOf(order)
    if (this.#known === undefined || id === undefined) return
    const identity = identityOf(order)
    const computer = { ip: request.ip ?? '', userAgent: request.userAgent }
    if (order.approval?.knownComputer) {
      await this.#known.noteUse(identity, id, computer)
      return
    }
    if (session === undefined || walletOf(session).subject !== identity.subject) return
    const { orderId } = order
    const at = newestTransition(order).at
    const became = await this.#known.remember(identity, id, { orderId, at }, computer)
    if (!became) return
    const { adapterId, address, publicKeyHex } = identity
    const wallet = { adapterId, address, publicKeyHex }
    this.#audit.record({ type: 'computer.remembered', computerId: id, orderId, ...wallet }, request)
  }

  /** Forgets the computer of an order that is taken back, known or not, and keeps the order from making it known. */
  async forget(order: OrderRecord): Promise<void> {
    const identity = identityOf(order)
    const id = this.#idFor(order, identity)
    if (id !== undefined) await this.#known?.forgetOfOrder(identity, id, order.orderId)
  }

  /** Whether it matters if the order's computer is known. */
  #counts({ computerKey }: OrderRecord): boolean {
    return this.#settings.knownComputers && this.#known !== undefined && computerKey !== undefined
  }

  #idFor({ computerKey, origin }: OrderRecord, identity: ProvenIdentity): string | undefined {
    if (computerKey === undefined) return undefined
    return this.#known?.idOf(identity, computerKey, { appName: this.#settings.appName, origin })
  }
}

/**
 * Refuses a finalize that does not prove possession of the order's computer key, with COMPUTER_PROOF_INVALID. Checked
 * like a token: before anything about the order's state is revealed.
 */
export function requireComputerProof(
  { orderId, computerKey }: OrderRecord,
  computerProof: string | undefined,
  desktopToken: string,
): void {
  if (computerKey === undefined) return
  if (computerProof !== undefined && provesComputerKey(computerKey, computerProof, { orderId, desktopToken })) return
  throw refused('COMPUTER_PROOF_INVALID')
}

/**
 * How the SubjectPublicKeyInfo of an uncompressed P-256 key begins: everything but the coordinates. Compared byte by
 * byte, so that there is no other curve, no compressed point and no second encoding of the same key, under which it
 * would be another computer.
 */
const spkiBeginning = Buffer.from('3059301306072a8648ce3d020106082a8648ce3d03010703420004', 'hex')

/** Bytes of the key: its fixed beginning, then x and y of 32 bytes each. */
const keyBytes = spkiBeginning.length + 64

/** Bytes of a proof: r, then s, of 32 bytes each. */
const proofBytes = 64

/**
 * Checks the public key of a computer: P-256, the uncompressed SubjectPublicKeyInfo (RFC 5480) of 91 bytes in
 * base64url, a point on the curve. Throws INVALID_REQUEST if it is anything else.
 */
export function requireComputerKey(computerKey: string): void {
  if (readKey(computerKey) !== undefined) return
  throw invalidField(
    'computer_key',
    'computer_key must be an uncompressed P-256 public key as SubjectPublicKeyInfo (91 bytes), in base64url ' +
      'without padding',
  )
}

/** Names an order for a proof of possession. */
export interface ComputerProofSubject {
  readonly orderId: string
  /** Secret. The proof contains its hash only. */
  readonly desktopToken: string
}

/**
 * Whether a proof shows possession of the private key, for this order and this desktop token: an ECDSA signature with
 * SHA-256, r and s of 32 bytes each, in base64url. False for anything malformed. Either of the two values of s counts,
 * because WebCrypto makes both; so a proof must never serve to tell one call from another.
 */
export function provesComputerKey(computerKey: string, computerProof: string, subject: ComputerProofSubject): boolean {
  const key = readKey(computerKey)
  const signature = fromBase64url(computerProof, proofBytes)
  if (key === undefined || signature === undefined) return false
  return verify('sha256', Buffer.from(proofText(subject)), { key, dsaEncoding: 'ieee-p1363' }, signature)
}

/** The text that a computer signs to finalize an order. */
function proofText({ orderId, desktopToken }: ComputerProofSubject): string {
  return `countersign.v1 finalize\n${orderId}\n${hashToken(desktopToken)}`
}

/** A computer's public key; `undefined` if it is not one. */
function readKey(computerKey: string): KeyObject | undefined {
  const spki = fromBase64url(computerKey, keyBytes)
  if (spki === undefined || !spki.subarray(0, spkiBeginning.length).equals(spkiBeginning)) return undefined
  try {
    return createPublicKey({ key: spki, format: 'der', type: 'spki' })
  } catch {
    // The coordinates are not on the curve.
    return undefined
  }
}

/** Decodes base64url without padding in its one canonical form; `undefined` for any other text or length. */
function fromBase64url(text: string, length: number): Buffer | undefined {
  const bytes = Buffer.from(text, 'base64url')
  return bytes.length === length && bytes.toString('base64url') === text ? bytes : undefined
}
