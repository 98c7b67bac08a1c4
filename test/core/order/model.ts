/**
 * Orders as a caller sees them, written down once more and differently: what the model says, the service must answer.
 * Times are milliseconds.
 */

export type Kind = 'login' | 'sign'
export type Mode = 'compare' | 'return'

/** A code or a proof that a caller sends. */
export type Sent = 'right' | 'wrong' | 'none'

/**
 * One caller's call about one order. Phones, signers and computers are numbered; tokens and tickets have names, which
 * the caller that got them knows: `undefined` is one that nobody ever got.
 */
export type Call =
  | { readonly type: 'claim'; readonly phone: number; readonly withKey: boolean }
  | { readonly type: 'read'; readonly token: string | undefined }
  | { readonly type: 'reject'; readonly token: string | undefined }
  | {
      readonly type: 'approve'
      readonly token: string | undefined
      readonly signer: number
      readonly validProof: boolean
      readonly remember: boolean
    }
  | { readonly type: 'handOver'; readonly token: string | undefined; readonly ticket: string }
  | { readonly type: 'redeem'; readonly phone: number; readonly withKey: boolean; readonly ticket: string | undefined }
  | { readonly type: 'cancel'; readonly ownToken: boolean }
  | { readonly type: 'finalize'; readonly ownToken: boolean; readonly code: Sent; readonly computer: Sent }

export interface Step {
  readonly status: string
  readonly at: number
}

/** What orders leave behind for later ones: computers that are known, by signer and computer. */
export type Known = ReadonlySet<string>

export function knownName(signer: number, computer: number): string {
  return `${computer} for ${signer}`
}

/** Name of the token that a claim gets: all claims that succeed get the same. */
export const claimed = 'of the claim'

/** Name of the token that is got for a ticket. */
export function redeemed(ticket: string): string {
  return `for ${ticket}`
}

/** How an order is started. */
export interface Beginning {
  readonly kind: Kind
  readonly mode: Mode
  /** The computer, if it brings a key. */
  readonly computer: number | undefined
}

interface Ticket {
  readonly name: string
  readonly madeAt: number
  readonly redeemed?: { readonly at: number; readonly phone: number; readonly withKey: boolean }
}

export class ModelOrder {
  readonly beginning: Beginning
  readonly expiresAt: number
  steps: Step[]
  /** The phone that claimed it, and whether by its key. */
  holder: { phone: number; withKey: boolean } | undefined
  /** Names of the phones' tokens, oldest first; the last one is in force. */
  tokens: string[] = []
  ticket: Ticket | undefined
  signer: number | undefined
  wrongReturnCodes = 0
  /** Whether the order asks for its return code, and remembers its computer. Decided when it is approved. */
  takesCode = false
  remembers = false
  takenBack = false
  /**
   * Whether a session was there when the order was taken back. Said by the caller, because calls at once can differ.
   */
  hadSession = true

  constructor(beginning: Beginning, now: number, ttlMs: number) {
    this.beginning = beginning
    this.expiresAt = now + ttlMs
    this.steps = [{ status: 'created', at: now }]
  }

  get status(): string {
    return this.#last.status
  }

  get over(): boolean {
    return ['finalized', 'rejected', 'cancelled', 'expired'].includes(this.status)
  }

  copy(): ModelOrder {
    const copy = new ModelOrder(this.beginning, 0, 0)
    return Object.assign(copy, this, { steps: [...this.steps], tokens: [...this.tokens] })
  }

  /** Time alone ends an order, too. */
  settle(now: number): void {
    const last = this.#last
    const life = this.takesCode ? 180_000 : 60_000
    const deadline = this.status === 'approved' ? Math.max(this.expiresAt, last.at + life) : this.expiresAt
    if (!this.over && now >= deadline) this.#go('expired', deadline)
  }

  /** Answers a call: `ok` and what the caller learns, or a reason. `known` is changed as the call changes it. */
  answer(call: Call, now: number, known: Set<string>): string {
    this.settle(now)
    const forgotten = this.over && now >= this.#last.at + 600_000
    if (call.type === 'redeem' && (forgotten || !this.#isNewest(call.ticket))) return 'HANDOVER_INVALID'
    if (forgotten) return 'ORDER_NOT_FOUND'
    if (!this.#isHolder(call)) return 'ORDER_TOKEN_INVALID'
    switch (call.type) {
      case 'claim':
        return this.#claim(call, now)
      case 'read':
        return this.#read(now)
      case 'reject':
        return this.#reject(now, known)
      case 'approve':
        return this.#approve(call, now, known)
      case 'handOver':
        return this.#handOver(call.ticket, now)
      case 'redeem':
        return this.#redeem(call, now)
      case 'cancel':
        if (this.status === 'cancelled') return 'ok cancelled'
        return this.over ? this.#ended : this.#moveOn('cancelled', now)
      case 'finalize':
        return this.#finalize(call, now, known)
    }
  }

  get #last(): Step {
    return this.steps.at(-1) as Step
  }

  get #ended(): string {
    return `ORDER_${this.status.toUpperCase()}`
  }

  #go(status: string, at: number): void {
    this.steps.push({ status, at })
  }

  #moveOn(status: string, at: number): string {
    this.#go(status, at)
    return `ok ${status}`
  }

  #isNewest(ticket: string | undefined): boolean {
    return ticket !== undefined && this.ticket?.name === ticket
  }

  #isHolder(call: Call): boolean {
    if ('ownToken' in call) return call.ownToken
    if (!('token' in call)) return true
    if (call.token === undefined) return false
    // Who handed the order over can still reject it, and take it back.
    return call.type === 'reject' ? this.#isRemembered(call.token) : this.tokens.at(-1) === call.token
  }

  /** Of many browsers that handed the order over, the tokens of the first and of the last seven are remembered. */
  #isRemembered(token: string): boolean {
    return token === this.tokens[0] || this.tokens.slice(-8).includes(token)
  }

  #claim(call: Call & { type: 'claim' }, now: number): string {
    if (this.over) return this.#ended
    if (this.holder === undefined) {
      this.holder = { phone: call.phone, withKey: call.withKey }
      this.tokens = [claimed]
      return this.#moveOn('claimed', now)
    }
    const again = call.withKey && this.holder.withKey && this.holder.phone === call.phone
    return again ? `ok ${this.status}` : 'ORDER_ALREADY_CLAIMED'
  }

  #read(now: number): string {
    if (this.over) return this.#ended
    if (this.status === 'claimed') this.#go('waiting_user', now)
    return `ok ${this.status}${this.#shownCode}`
  }

  get #shownCode(): string {
    return this.status === 'approved' && this.takesCode ? ' with a code' : ''
  }

  #reject(now: number, known: Set<string>): string {
    if (this.status === 'rejected') return 'ok rejected'
    const { kind, computer } = this.beginning
    if (this.status === 'finalized' && kind === 'login') {
      // A retry forgets nothing that another order has made known since.
      if (computer !== undefined && !this.takenBack) known.delete(this.#computerName(computer))
      this.takenBack = true
      return `ok finalized, ${this.hadSession ? 'session ended' : 'no session'}`
    }
    return this.over ? this.#ended : this.#moveOn('rejected', now)
  }

  #approve(call: Call & { type: 'approve' }, now: number, known: Known): string {
    const { mode, kind, computer } = this.beginning
    const same = call.validProof && call.signer === this.signer
    if (same && ['approved', 'finalized'].includes(this.status)) return `ok ${this.status}${this.#shownCode}`
    if (this.over) return this.#ended
    if (this.status === 'approved') return 'ORDER_ALREADY_APPROVED'
    if (this.status !== 'waiting_user') return 'ORDER_CHALLENGE_NOT_READ'
    if (!call.validProof) return 'SIGNATURE_INVALID'
    this.signer = call.signer
    this.takesCode = mode === 'return' && !(computer !== undefined && known.has(this.#computerName(computer)))
    this.remembers = this.takesCode && call.remember && kind === 'login' && computer !== undefined
    this.#go('approved', now)
    return `ok approved${this.#shownCode}`
  }

  #computerName(computer: number): string {
    return knownName(this.signer as number, computer)
  }

  #handOver(ticket: string, now: number): string {
    if (this.over) return this.#ended
    if (this.status === 'approved') return 'ORDER_ALREADY_APPROVED'
    this.ticket = { name: ticket, madeAt: now }
    return 'ok'
  }

  #redeem(call: Call & { type: 'redeem' }, now: number): string {
    const { name, madeAt, redeemed: use } = this.ticket as Ticket
    const again = call.withKey && use?.withKey === true && use.phone === call.phone && now < use.at + 60_000
    if (again && !this.over) return `ok ${this.status}`
    if (use !== undefined || now >= madeAt + 60_000) return 'HANDOVER_INVALID'
    if (this.over) return this.#ended
    if (this.status === 'approved') return 'ORDER_ALREADY_APPROVED'
    this.ticket = { name, madeAt, redeemed: { at: now, phone: call.phone, withKey: call.withKey } }
    this.tokens.push(redeemed(name))
    return `ok ${this.status}`
  }

  #finalize(call: Call & { type: 'finalize' }, now: number, known: Set<string>): string {
    const { computer } = this.beginning
    if (computer !== undefined && call.computer !== 'right') return 'COMPUTER_PROOF_INVALID'
    if (this.takenBack) return 'ORDER_REJECTED'
    const again = this.status === 'finalized' && now < this.#last.at + 60_000 && this.wrongReturnCodes < 3
    if (this.status !== 'approved' && !again) return this.over ? this.#ended : 'ORDER_NOT_APPROVED'
    if (this.takesCode && call.code === 'none') return 'RETURN_CODE_REQUIRED'
    if (this.takesCode && call.code === 'wrong') {
      this.wrongReturnCodes++
      if (this.wrongReturnCodes === 3 && !again) this.#go('rejected', now)
      return 'RETURN_CODE_WRONG'
    }
    if (!again) this.#go('finalized', now)
    if (!again && this.remembers) known.add(this.#computerName(computer as number))
    return 'ok finalized'
  }
}
