import type { SignInValues } from '../../shared/page-values.ts'
import type { CountersignClient, CountersignClientError, Session, StartedOrder } from '../client/index.ts'
import { isPhone } from '../client/page.ts'
import { CountersignSignIn } from '../element/element.ts'
import { ClaimNotes } from './claim-notes.ts'
import { element, noteForOperator, withExact } from './dom.ts'
import type { Page } from './open-page.ts'
import { appsFor, hubFor, wantedWallets } from './page-wallet.ts'
import { elementTexts } from './words.ts'

/** Options of {@link SignInWays}. */
export interface SignInWaysOptions {
  readonly client: CountersignClient
  readonly page: Page<SignInValues>
  /** Command with which the page's developer makes it reachable for phones. Default: no note of it. */
  readonly lanCommand?: string
  /** Called with the session of a sign-in. */
  readonly onSession: (session: Session) => void
  /** Called with the error that names a wallet that is not on the service's list. */
  readonly onNotListed: (error: CountersignClientError) => void
}

/** The ways to sign in: a `<countersign-sign-in>` in the page's language, and notes on its code. */
export class SignInWays {
  readonly #options: SignInWaysOptions
  readonly #problem = element('p', 'error')
  #place: HTMLElement | undefined

  constructor(options: SignInWaysOptions) {
    this.#options = options
    this.#problem.setAttribute('role', 'alert')
  }

  /** Offers the ways in a place of the page; without `startsOrders`, the wallets on this device only. */
  open(place: HTMLElement, startsOrders: boolean): void {
    if (this.#place !== undefined) return
    this.#place = place
    const { client, page, lanCommand, onSession, onNotListed } = this.#options
    const ways = this.#element(startsOrders)
    const notes = new ClaimNotes(page.words, lanCommand)
    let claimUrl = ''
    ways.startOrder = async ({ signal }) => {
      if (!startsOrders) return await never
      // Without words of the page, and for all adapters: at the service's own origin, that needs no start key.
      const order = await client.startOrder({ kind: 'login', signal })
      if (!signal.aborted) claimUrl = order.claimUrl
      return order
    }
    ways.addEventListener('countersign:status', ({ detail: { status } }) => {
      if (status === 'created') notes.show(claimUrl)
      else notes.hide()
    })
    ways.addEventListener('countersign:error', ({ detail: { error } }) => {
      notes.hide()
      noteForOperator(error)
      if (error.address !== undefined) onNotListed(error)
    })
    ways.addEventListener('countersign:signed-in', ({ detail: { session } }) => onSession(session))
    this.#problem.textContent = ''
    place.replaceChildren(ways, notes.root, this.#problem)
  }

  /** Says what went wrong, beneath the ways. `exact` is the part of the text that no translation may change. */
  complain(text: string, exact: string): void {
    this.#problem.replaceChildren(...withExact(text, [exact]))
  }

  /** Offers them no longer. A running order is cancelled. */
  close(): void {
    this.#place?.replaceChildren()
    this.#place = undefined
  }

  #element(startsOrders: boolean): CountersignSignIn {
    const { client, page } = this.#options
    const { appName, adapterIds } = page.values
    const ways = new CountersignSignIn()
    ways.setAttribute('kind', 'login')
    ways.setAttribute('adapter-ids', adapterIds.join())
    const extra = wantedWallets(page).extra ?? []
    ways.extraWallets = extra
    ways.classList.toggle('on-phone', isPhone())
    ways.classList.toggle('without-clipboard', !('clipboard' in navigator))
    ways.classList.toggle('wallets-only', !startsOrders)
    ways.classList.toggle('with-code', startsOrders && !isPhone())
    // The line for people who have no wallet is half as high as an entry.
    const help = page.values.walletHelp ? 0.6 : 0
    ways.style.setProperty('--entries', String(entriesAhead(adapterIds, extra.length) + help))
    ways.hub = hubFor(appName)
    ways.walletHelp = page.values.walletHelp
    ways.texts = elementTexts(page.words)
    ways.client = client
    return ways
  }
}

/** An order that is never started. */
const never = new Promise<StartedOrder>(() => {})

/**
 * Number of entries that the list of wallets will have at least, on phones, where it is there from the start: its place
 * is kept until it has loaded. A wallet app has a link on pages at https.
 */
function entriesAhead(adapterIds: readonly string[], extra: number): number {
  if (!isPhone()) return 0
  const hub = adapterIds.includes('nimiq') ? 1 : 0
  return hub + extra + (location.protocol === 'https:' ? appsFor(adapterIds).length : 0)
}
