/**
 * Orders as a caller sees them, written down once more and differently: what the model says, the service must answer.
 * Times are milliseconds.
 */

export type Kind = 'login' | 'sign'

/** One caller's call about one order. Phones and signers are numbered. */
export type Call =
  | { readonly type: 'claim'; readonly phone: number; readonly withKey: boolean }
  | { readonly type: 'read'; readonly phone: number }
  | { readonly type: 'reject'; readonly phone: number }
  | {
      readonly type: 'approve'
      readonly phone: number
      readonly signer: number
      readonly validProof: boolean
      readonly code: 'right' | 'wrong' | 'none'
    }
  | { readonly type: 'cancel' | 'finalize'; readonly ownToken: boolean }

export interface Step {
  readonly status: string
  readonly at: number
}

export class ModelOrder {
  readonly kind: Kind
  readonly codeRequired: boolean
  readonly expiresAt: number
  steps: Step[]
  /** The phone that claimed it, and whether by its key. */
  holder: { phone: number; withKey: boolean } | undefined
  signer: number | undefined
  wrongCodes = 0

  constructor(kind: Kind, codeRequired: boolean, now: number, ttlMs: number) {
    this.kind = kind
    this.codeRequired = codeRequired
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
    const copy = new ModelOrder(this.kind, this.codeRequired, 0, 0)
    return Object.assign(copy, this, { steps: [...this.steps] })
  }

  /** Time alone ends an order, too. */
  settle(now: number): void {
    const last = this.#last
    const deadline = this.status === 'approved' ? Math.max(this.expiresAt, last.at + 60_000) : this.expiresAt
    if (!this.over && now >= deadline) this.#go('expired', deadline)
  }

  /** Answers a call: `ok` and the status, or a reason. `knowsToken`: whether the phone got its token before. */
  answer(call: Call, knowsToken: boolean, now: number): string {
    this.settle(now)
    if (this.over && now >= this.#last.at + 600_000) return 'ORDER_NOT_FOUND'
    if ('ownToken' in call ? !call.ownToken : call.type !== 'claim' && !knowsToken) return 'ORDER_TOKEN_INVALID'
    const again = this.#isAgain(call, now)
    if (this.over && !again) return `ORDER_${this.status.toUpperCase()}`
    return (again ? undefined : this.#act(call, now)) ?? `ok ${this.status}`
  }

  get #last(): Step {
    return this.steps.at(-1) as Step
  }

  #go(status: string, at: number): undefined {
    this.steps.push({ status, at })
  }

  #isAgain(call: Call, now: number): boolean {
    const { status } = this
    switch (call.type) {
      case 'claim':
        return !this.over && call.withKey && this.holder?.withKey === true && this.holder.phone === call.phone
      case 'read':
        return false
      case 'reject':
        return status === 'rejected'
      case 'approve':
        return call.validProof && call.signer === this.signer && ['approved', 'finalized'].includes(status)
      case 'cancel':
        return status === 'cancelled'
      case 'finalize':
        return status === 'finalized' && now < this.#last.at + 60_000
    }
  }

  /** Carries a call out on an order that goes on; returns why not. */
  #act(call: Call, now: number): string | undefined {
    const { status } = this
    switch (call.type) {
      case 'claim':
        if (status !== 'created') return 'ORDER_ALREADY_CLAIMED'
        this.holder = { phone: call.phone, withKey: call.withKey }
        return this.#go('claimed', now)
      case 'read':
        return status === 'claimed' ? this.#go('waiting_user', now) : undefined
      case 'reject':
        return status === 'approved' ? 'ORDER_ALREADY_APPROVED' : this.#go('rejected', now)
      case 'approve':
        if (status === 'approved') return 'ORDER_ALREADY_APPROVED'
        if (status !== 'waiting_user') return 'ORDER_CHALLENGE_NOT_READ'
        if (!call.validProof) return 'SIGNATURE_INVALID'
        if (this.codeRequired && call.code !== 'right') return this.#refuseCode(call.code, now)
        this.signer = call.signer
        return this.#go('approved', now)
      case 'cancel':
        return this.#go('cancelled', now)
      case 'finalize':
        return status === 'approved' ? this.#go('finalized', now) : 'ORDER_NOT_APPROVED'
    }
  }

  #refuseCode(code: 'wrong' | 'none', now: number): string {
    if (code === 'none') return 'CONFIRMATION_CODE_REQUIRED'
    this.wrongCodes++
    if (this.wrongCodes === 3) this.#go('rejected', now)
    return 'CONFIRMATION_CODE_WRONG'
  }
}
