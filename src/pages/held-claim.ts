import type { Claim } from '../client/claim-url.ts'
import { newClaimKey } from '../client/index.ts'
import { readClaimLink } from './claim-link.ts'
import { tryStorage } from './storage.ts'

/** A claim that this tab keeps, to repeat it if an answer is lost or the page is reloaded. Without storage, a reload loses it. */
export interface HeldClaim extends Claim {
  /** Secret of this tab. */
  readonly claimKey: string
  /** Number of wrong confirmation codes that were entered in this tab. */
  readonly wrongCodes: number
}

const storageKey = 'countersign.claim'

/**
 * Reads the claim and removes its token from the address bar, so that the token gets into no history, bookmark, screenshot or
 * copied link. The tab keeps the claim until the request is over, because phones reload pages at any time.
 */
export function takeClaim(template: string): HeldClaim | undefined {
  const claim = readClaimLink(template, location)
  history.replaceState(null, '', location.pathname + location.search)
  const kept = readKept()
  if (claim === undefined) return kept !== undefined && isHere(kept) ? kept : undefined
  const held = kept?.claimToken === claim.claimToken ? kept : { ...claim, claimKey: newClaimKey(), wrongCodes: 0 }
  keep(held)
  return held
}

/** Counts one more wrong confirmation code. Returns their number. */
export function countWrongCode(): number {
  const kept = readKept()
  const wrongCodes = (kept?.wrongCodes ?? 0) + 1
  if (kept !== undefined) keep({ ...kept, wrongCodes })
  return wrongCodes
}

/** Deletes the claim after the request is over. */
export function forgetClaim(): void {
  tryStorage('sessionStorage', (storage) => storage.removeItem(storageKey))
}

function keep(held: HeldClaim): void {
  tryStorage('sessionStorage', (storage) => storage.setItem(storageKey, JSON.stringify(held)))
}

function readKept(): HeldClaim | undefined {
  const text = tryStorage('sessionStorage', (storage) => storage.getItem(storageKey))
  return text === undefined || text === null ? undefined : (JSON.parse(text) as HeldClaim)
}

/** Whether a kept claim is for the page's own address. */
function isHere({ orderId }: HeldClaim): boolean {
  return `${location.pathname}${location.search}`.split(/[/?&=]/).includes(orderId)
}
