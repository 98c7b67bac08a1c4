import { type Claim, newClaimKey, type OrderKind } from '../client/index.ts'
import { tryStorage } from '../client/page.ts'
import type { Who } from './who.ts'

/**
 * What this tab keeps of an order, to repeat a call whose answer is lost, and to go on after the page is reloaded.
 * Without storage, a reload loses it.
 */
export interface HeldClaim {
  readonly orderId: string
  /**
   * What the order is taken with: the token of a claim URL, the ticket of a hand-over, or the session of the user in
   * whose inbox it is.
   */
  readonly by: { readonly claimToken: string } | { readonly ticket: string } | { readonly inbox: true }
  /** Secret of this tab. */
  readonly claimKey: string
  /** Present once this tab has asked for the order, which it may have got although no answer arrived. */
  readonly asked?: true
  /** The phone's token, once the order is this tab's. */
  readonly challengeToken?: string
  /**
   * Present if this tab made a ticket, so that another browser may have taken the order over: a wallet's, if the user
   * opened one.
   */
  readonly handedOver?: 'browser' | 'wallet'
  /**
   * Present once a wallet at another site was asked to sign, which may take the place of the page: what the user chose.
   */
  readonly sent?: SentApproval | undefined
  /** Whose wallet signed. Present once it has. */
  readonly who?: Who
  /** Present once the order is approved. */
  readonly approved?: HeldApproval
}

/** An approval that a wallet at another site is asked to sign. */
export interface SentApproval {
  readonly walletId: string
  readonly rememberComputer: boolean
}

/** What this tab keeps of an approved order, of which the service says nothing more once it is finalized. */
export interface HeldApproval {
  readonly kind: OrderKind
  /** Origin of the requester. */
  readonly origin: string
  /** Whether this phone showed a code. */
  readonly withCode: boolean
  /** Time until which the computer can finish, epoch milliseconds on the service's clock. */
  readonly until: number
  /** Whether it was an order of the user's inbox. */
  readonly fromInbox: boolean
  /** Whose wallet signed, if this tab saw it sign. */
  readonly who?: Who | undefined
}

const storageKey = 'countersign.claim'

/**
 * Reads the claim, or the ticket of a hand-over, and removes it from the address bar, so that it gets into no history,
 * bookmark, screenshot or copied link. The tab keeps it until the request is over, because phones reload pages at any
 * time.
 */
export function takeClaim(template: string): HeldClaim | undefined {
  const handOver = readHandOverLink(location.pathname)
  const claim = readClaimLink(template, location)
  history.replaceState(null, '', (handOver?.pathAfter ?? location.pathname) + location.search)
  const kept = readKept()
  if (handOver !== undefined) return holdNew(kept, handOver.orderId, { ticket: handOver.ticket })
  if (claim !== undefined) return holdNew(kept, claim.orderId, { claimToken: claim.claimToken })
  return kept !== undefined && isHere(kept) ? kept : undefined
}

/** Keeps the order that the user has tapped in the inbox: each tap claims it anew. */
export function holdFromInbox(orderId: string): void {
  keep({ orderId, by: { inbox: true }, claimKey: newClaimKey() })
}

/** Keeps more of the claim. */
export function hold(more: Partial<HeldClaim>): void {
  const kept = readKept()
  if (kept !== undefined) keep({ ...kept, ...more })
}

/** Deletes the claim after the request is over. */
export function forgetClaim(): void {
  tryStorage('sessionStorage', (storage) => storage.removeItem(storageKey))
}

function holdNew(kept: HeldClaim | undefined, orderId: string, by: HeldClaim['by']): HeldClaim {
  // The same link again, as after a reload: what this tab knows of it stays.
  if (kept !== undefined && JSON.stringify(kept.by) === JSON.stringify(by)) return kept
  const held: HeldClaim = { orderId, by, claimKey: newClaimKey() }
  keep(held)
  return held
}

function keep(held: HeldClaim): void {
  tryStorage('sessionStorage', (storage) => storage.setItem(storageKey, JSON.stringify(held)))
}

function readKept(): HeldClaim | undefined {
  return JSON.parse(tryStorage('sessionStorage', (storage) => storage.getItem(storageKey)) ?? 'null') ?? undefined
}

/** Whether a kept claim is for the page's own address. */
function isHere({ orderId }: HeldClaim): boolean {
  return `${location.pathname}${location.search}`.split(/[/?&=]/).includes(orderId)
}

const forms: Readonly<Record<string, string>> = {
  orderId: '[A-Za-z0-9_-]{1,64}',
  claimToken: '[A-Za-z0-9_.~-]{1,512}',
}

/**
 * Reads a claim URL by the service's own template, which may differ from the form that `parseClaimUrl` reads. Ignores a
 * query that the template does not have, such as those that messengers add to links. `undefined` if a part is missing.
 */
export function readClaimLink(template: string, url: Pick<URL, 'pathname' | 'search' | 'hash'>): Claim | undefined {
  const [head = '', fragment = ''] = template.replace('{origin}', '').split('#')
  const address = url.pathname + (head.includes('?') ? url.search : '')
  const found = { ...match(head || '/', address), ...match(fragment, url.hash.slice(1)) }
  const { orderId, claimToken } = found
  return orderId === undefined || claimToken === undefined ? undefined : { orderId, claimToken }
}

function match(template: string, text: string): Record<string, string> | undefined {
  const seen = new Set<string>()
  const pattern = template
    .split(/\{(orderId|claimToken)\}/)
    .map((part, index) => {
      if (index % 2 === 0) return part.replace(/[.*+?^${}()|[\]\\]/g, '\\$&')
      // A regular expression can use each group name only once.
      const name = seen.has(part) ? '' : `?<${part}>`
      seen.add(part)
      return `(${name}${forms[part]})`
    })
    .join('')
  return new RegExp(`^${pattern}$`).exec(text)?.groups
}

/** The address at which an order continues in another browser: `…/cross-device/continue/{ticket}`. */
export interface HandOverLink {
  /** Secret. */
  readonly ticket: string
  readonly orderId: string
  /** The path with the order's identifier in place of the ticket. A reload at it shows the same page. */
  readonly pathAfter: string
}

/**
 * Reads the ticket: a type prefix, 43 characters of base64url, and the order's identifier. `undefined` if there is
 * none.
 */
export function readHandOverLink(pathname: string): HandOverLink | undefined {
  const found = /^(.*\/cross-device\/continue\/)(csh_[A-Za-z0-9_-]{43}([A-Za-z0-9_-]{1,64}))$/.exec(pathname)
  if (found === null) return undefined
  const [, folder, ticket, orderId] = found as unknown as [string, string, string, string]
  return { ticket, orderId, pathAfter: folder + orderId }
}

/** Whether a path is where orders continue from another browser. */
export function isContinued(pathname: string): boolean {
  return /\/cross-device\/continue\//.test(pathname)
}
