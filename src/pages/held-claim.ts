import type { Claim } from '../client/claim-url.ts'
import { newClaimKey } from '../client/index.ts'
import { readClaimLink } from './claim-link.ts'

/** What this tab needs to claim an order, and to claim it again when an answer is lost or the page reloaded. */
export interface HeldClaim extends Claim {
  /** Secret of this tab's own. */
  readonly claimKey: string
  /** Wrong confirmation codes that were entered here. */
  readonly wrongCodes: number
}

const storageKey = 'countersign.claim'

/**
 * Takes the claim token out of the address bar: from here on it is in no history, no bookmark, no screenshot and no link that
 * someone copies from there. The tab keeps it until the request is over, because phones reload pages as they please.
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

/** Counts one more wrong confirmation code; returns how many there were. */
export function countWrongCode(): number {
  const kept = readKept()
  const wrongCodes = (kept?.wrongCodes ?? 0) + 1
  if (kept !== undefined) keep({ ...kept, wrongCodes })
  return wrongCodes
}

/** Forgets the claim: the request is over. */
export function forgetClaim(): void {
  tryStorage((storage) => storage.removeItem(storageKey))
}

function keep(held: HeldClaim): void {
  tryStorage((storage) => storage.setItem(storageKey, JSON.stringify(held)))
}

function readKept(): HeldClaim | undefined {
  const text = tryStorage((storage) => storage.getItem(storageKey))
  return text === undefined || text === null ? undefined : (JSON.parse(text) as HeldClaim)
}

/** Whether a kept claim is for the page's own address. */
function isHere({ orderId }: HeldClaim): boolean {
  return `${location.pathname}${location.search}`.split(/[/?&=]/).includes(orderId)
}

/** Without storage (a browser's privacy settings) a reload loses the claim, and nothing else. */
function tryStorage<T>(use: (storage: Storage) => T): T | undefined {
  try {
    return use(sessionStorage)
  } catch {
    return undefined
  }
}
