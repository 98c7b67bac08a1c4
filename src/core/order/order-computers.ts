import type { AuditTrail } from '../../base/audit/trail.ts'
import type { RequestContext } from '../../base/request.ts'
import { CountersignError } from '../../shared/errors.ts'
import type { ProvenIdentity } from '../wallet/proof.ts'
import { provesComputerKey } from './computer-key.ts'
import type { KnownComputers } from './known-computers.ts'
import { identityOf, newestTransition, type OrderApproval, type OrderRecord } from './order.ts'
import type { OrderSettings } from './start.ts'

/** The computers that orders come from: which are known to the wallets that approve, and which become known. */
export class OrderComputers {
  readonly #known: KnownComputers | undefined
  readonly #settings: Pick<OrderSettings, 'appName' | 'knownComputers'>
  readonly #audit: AuditTrail

  /** Without `known`, no computer is known or becomes known. */
  constructor(
    known: KnownComputers | undefined,
    settings: Pick<OrderSettings, 'appName' | 'knownComputers'>,
    audit: AuditTrail,
  ) {
    this.#known = known
    this.#settings = settings
    this.#audit = audit
  }

  /** Whether the phone's user can let the computer be remembered. Only a login makes a computer known. */
  canRemember(order: OrderRecord): boolean {
    return order.returnCodes === true && order.kind === 'login' && this.#counts(order)
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
    return { knownComputer, rememberComputer: rememberComputer && order.kind === 'login' }
  }

  /** The id of the computer of an approved order, if it is known to the wallet or about to be. */
  idOf(order: OrderRecord): string | undefined {
    const { approval } = order
    if (approval === undefined || !(approval.knownComputer || approval.rememberComputer)) return undefined
    return this.#idFor(order, identityOf(order))
  }

  /** Makes the computer known that finalized the order, or notes that it did. */
  async note(order: OrderRecord, request: RequestContext): Promise<void> {
    const id = this.idOf(order)
    if (this.#known === undefined || id === undefined) return
    const identity = identityOf(order)
    const computer = { ip: request.ip ?? '', userAgent: request.userAgent }
    if (order.approval?.knownComputer) {
      await this.#known.noteUse(identity, id, computer)
      return
    }
    const { orderId } = order
    const at = newestTransition(order).at
    const became = await this.#known.remember(identity, id, { orderId, at }, computer)
    if (!became) return
    const { adapterId, address, publicKeyHex } = identity
    const wallet = { adapterId, address, publicKeyHex }
    this.#audit.tell({ type: 'computer.remembered', computerId: id, orderId, ...wallet }, request)
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
 * Refuses a finalize that does not prove possession of the order's computer key, with COMPUTER_PROOF_INVALID. Checked like a token:
 * before anything about the order's state is told.
 */
export function requireComputerProof(
  { orderId, computerKey }: OrderRecord,
  computerProof: string | undefined,
  desktopToken: string,
): void {
  if (computerKey === undefined) return
  if (computerProof !== undefined && provesComputerKey(computerKey, computerProof, { orderId, desktopToken })) return
  throw new CountersignError(
    'COMPUTER_PROOF_INVALID',
    'The order was started by a computer with a key, and computer_proof does not prove possession of it',
  )
}
