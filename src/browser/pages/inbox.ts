import { inboxTexts } from '../../shared/texts/pages.ts'
import { shortAddress } from '../../shared/wallet-address.ts'
import { failureOf } from '../client/errors.ts'
import type { InboxOrder, Session } from '../client/index.ts'
import { cookieClient, signInAddress } from './cookie-client.ts'
import { byId, element, fill, noteForOperator } from './dom.ts'
import { holdFromInbox } from './held-claim.ts'
import { openPage } from './open-page.ts'
import { ServiceClock, settingClock } from './phone-calls.ts'
import { Poll } from './poll.ts'

/**
 * The inbox: the requests that wait for the signed-in user's approval. With `order` in its address, as in the link of a
 * message, that one only. A tap keeps the order for the approval page, which claims it, so that a page that is merely
 * opened takes no order. All calls use the cookie and are under the base path.
 */

/** Time between two looks, in milliseconds. */
const pollMs = 5000
/** Time before its end at which a request stands out, in milliseconds. */
const soonMs = 300_000

const { words, values } = await openPage<'inbox'>(inboxTexts, { readsLocales: true })
const clock = new ServiceClock()
const client = cookieClient(values, settingClock(clock))
/** The only order that is shown, if the address names one. */
const wanted = new URL(location.href).searchParams.get('order')
const list = byId('requests')
const heading = byId('head').querySelector('h1')
/** The rows by the ids of their orders. */
const rows = new Map<string, RequestRow>()
let session: Session | undefined
const poll = new Poll(look)

showTitle(0)
byId('retry-button').addEventListener('click', () => void poll.now())
addEventListener('offline', () => complain(words.say('task.offline')))
// Back from the approval page, as it was when the user tapped.
addEventListener('pageshow', ({ persisted }) => persisted && location.reload())
// Another tab signed out, or signed in with another wallet.
client.onSession(() => setTimeout(() => location.reload()))
poll.start(pollMs)
void poll.now()

/** A request in the list. */
interface RequestRow {
  readonly root: HTMLElement
  /** Writes anew what depends on the time, and on whether there are others. */
  readonly refresh: (isOnly: boolean) => void
}

async function look(): Promise<void> {
  try {
    session ??= await client.getCurrentSession()
    if (session === undefined) return location.replace(signInAddress(values))
    if (session.orderId !== undefined) return close('elsewhere')
    const orders = await client.listInbox()
    show(wanted === null ? orders : orders.filter(({ orderId }) => orderId === wanted), session)
  } catch (thrown) {
    const failure = failureOf(thrown)
    if (failure.code === 'SESSION_NOT_FRESH') return close('elsewhere')
    if (failure.code === 'SESSION_REQUIRED' || failure.code === 'SESSION_INVALID') return close('signed-out')
    noteForOperator(failure)
    complain(navigator.onLine ? words.notice(failure.code) : words.say('task.offline'))
  }
}

function show(orders: readonly InboxOrder[], { address }: Session): void {
  complain('')
  const gone = [...rows.keys()].filter((id) => !orders.some(({ orderId }) => orderId === id))
  const hadFocus = gone.some((id) => rows.get(id)?.root.contains(document.activeElement))
  for (const id of gone) {
    rows.get(id)?.root.remove()
    rows.delete(id)
  }
  for (const [index, order] of orders.entries()) {
    const row = rows.get(order.orderId) ?? rowOf(order)
    rows.set(order.orderId, row)
    row.refresh(orders.length === 1)
    // A row in its place is not moved: it may have the focus.
    if (list.children[index] !== row.root) list.insertBefore(row.root, list.children[index] ?? null)
  }
  const isOver = wanted !== null && orders.length === 0
  byId('none').hidden = wanted !== null || orders.length > 0
  byId('over').hidden = !isOver
  fill(byId('over'), 'over', words.say('inbox.over.text', { address: shortAddress(address) }), shortAddress(address))
  byId<HTMLAnchorElement>('other-wallet-link').href = signInAddress(values, true)
  byId('all-link').hidden = wanted === null
  showTitle(orders.length)
  reveal()
  if (hadFocus) heading?.focus()
}

function rowOf(order: InboxOrder): RequestRow {
  const { orderId, displayTitle, displaySummary, startedBy } = order
  const ago = element('span', '')
  const who = element('p', 'request-who', ago)
  if (startedBy !== undefined) {
    ago.before(
      element('span', 'strong', words.say('inbox.asked', { name: startedBy })),
      Object.assign(element('span', '', ' · '), { ariaHidden: 'true' }),
    )
  }
  const title = textOf('h2', displayTitle ?? words.say('inbox.untitled'))
  const summary = displaySummary === undefined ? [] : [textOf('p', displaySummary)]
  const expires = element('p', 'hint')
  const button = element('button', 'button')
  button.type = 'button'
  button.addEventListener('click', () => {
    button.setAttribute('aria-busy', 'true')
    holdFromInbox(orderId)
    location.assign(`${values.inboxPath}/${orderId}`)
  })
  const foot = element('div', 'row request-foot', expires, button)
  const root = element('li', 'card request', who, title, ...summary, foot)
  const refresh = (isOnly: boolean): void => {
    button.className = isOnly ? 'button primary wide' : 'button plain small'
    button.textContent = words.say(isOnly ? 'inbox.review.request' : 'inbox.review')
    button.setAttribute('aria-label', `${button.textContent}: ${title.textContent}`)
    ago.textContent = words.ago(Math.max(0, clock.now() - order.createdAt))
    const leftMs = Math.max(0, order.expiresAt - clock.now())
    expires.textContent = words.say('inbox.expires', { time: words.left(leftMs) })
    expires.toggleAttribute('data-soon', leftMs < soonMs)
  }
  return { root, refresh }
}

/** A text of the order, which is cut off if it is long: the approval page shows all of it. */
function textOf(name: 'h2' | 'p', text: string): HTMLElement {
  const shown = element(name, 'folding', text)
  shown.dir = 'auto'
  shown.translate = false
  return shown
}

/** Says what is in the way of looking; nothing if the text is empty. */
function complain(text: string): void {
  byId('notice').hidden = text === ''
  fill(byId('notice'), 'notice', text)
}

/** Ends the looking: this browser sees no requests until its user signs in here. */
function close(reason: 'elsewhere' | 'signed-out'): void {
  poll.stop()
  complain('')
  const closed = byId('closed')
  fill(closed, 'closed', words.say(`inbox.${reason}.title`))
  fill(closed, 'closedText', words.say(`inbox.${reason}.text`))
  byId<HTMLAnchorElement>('sign-in-link').href = signInAddress(values, true)
  for (const id of ['none', 'over', 'all-link']) byId(id).hidden = true
  list.replaceChildren()
  closed.hidden = false
  showTitle(0)
  reveal()
  closed.querySelector('h2')?.focus()
}

function reveal(): void {
  byId('head').hidden = false
  document.body.toggleAttribute('data-waiting', false)
}

/** Counts the requests in the title of the tab, and for screen readers. */
function showTitle(count: number): void {
  const title = `${words.say('inbox.title')} · ${values.appName}`
  document.title = count === 0 ? title : `(${count}) ${title}`
  const spoken = byId('count')
  const text = count === 0 ? '' : words.say('inbox.count', { count: String(count) })
  // Not again what has been said.
  if (spoken.textContent !== text) spoken.textContent = text
}
