import { returnTarget } from '../../shared/return-path.ts'
import { signInTexts } from '../../shared/texts/pages.ts'
import { isSameAddressText } from '../../shared/wallet-address.ts'
import type { Session } from '../client/index.ts'
import { cookieClient } from './cookie-client.ts'
import { byId, fill, noteForOperator } from './dom.ts'
import { openPage } from './open-page.ts'
import { clearUnavailableWallet } from './page-wallet.ts'
import { SignInWays } from './sign-in-ways.ts'
import { Tasks } from './tasks.ts'
import { whoView } from './who.ts'

/**
 * The sign-in page: a wallet on this device, or one on a phone. It leads to `returnTo`. `again`, `wallet` and
 * `ui_locales`, the rest of what it reads of its address, only change what it shows. The session is in the cookie only.
 * Calls are REST calls under the base path, because a proxy in front of another application passes on nothing
 * else.
 *
 * It leads on by itself after a sign-in only. Users who are signed in already tap "Continue": where the application, or
 * the proxy, refuses that session and leads back here, the browser would go around for ever.
 */

const page = await openPage<'sign-in'>(signInTexts, { title: 'sign-in.title', readsLocales: true })
const { words, values } = page
const target = returnTarget(new URL(location.href))
const wanted = wantedWallet(new URL(location.href), values.adapterIds)
const views = { out: byId('signed-out'), in: byId('signed-in') }
const continueLink = byId<HTMLAnchorElement>('continue-link')
const otherWalletButton = byId('other-wallet-button')

const client = cookieClient(values)
const ways = new SignInWays({
  client,
  page,
  onSession: (session) => void leave(session),
  onNotListed: (error) => tasks.sayNotListed(error),
})
const tasks = new Tasks({ page })

fill(views.out, 'text', words.say('sign-in.text', { host: location.host }), location.host)
fill(views.out, 'wanted', wanted && words.say('sign-in.wanted', { address: wanted.address }), wanted?.address ?? '')
continueLink.href = target.href
clearUnavailableWallet(values)

continueLink.addEventListener('click', () => continueLink.setAttribute('aria-busy', 'true'))
otherWalletButton.addEventListener('click', () => void tasks.run(signOut))
// As it was when the user left it: signed in, and on the way.
addEventListener('pageshow', ({ persisted }) => persisted && location.reload())
// After the page's own sign-in and sign-out, which show themselves.
client.onSession((session) => setTimeout(() => follow(session)))
// Without the cookie, asking is of no use. With `again`, a new sign-in is wanted.
if (values.maybeSignedIn && new URL(location.href).searchParams.get('again') !== '1') void tasks.run(lookForSession)
else showSignedOut()

async function lookForSession(signal: AbortSignal): Promise<void> {
  const session = await client.getCurrentSession({ signal })
  if (session === undefined) showSignedOut()
  else showSignedIn(session)
}

async function signOut(signal: AbortSignal): Promise<void> {
  otherWalletButton.setAttribute('aria-busy', 'true')
  try {
    await client.signOut({ signal })
    showSignedOut()
    focusHeading(views.out)
  } finally {
    otherWalletButton.removeAttribute('aria-busy')
  }
}

/** Leads to where the user wanted to go, without this page in the browser's history. */
async function leave(session: Session): Promise<void> {
  showSignedIn(session)
  continueLink.setAttribute('aria-busy', 'true')
  focusHeading(views.in)
  // Without its cookie, the browser would be led back here, again and again.
  const kept = await client.getCurrentSession().catch(() => session)
  if (kept !== undefined) return location.replace(target)
  continueLink.removeAttribute('aria-busy')
  showSignedOut()
  focusHeading(views.out)
  ways.complain(words.say('sign-in.not-kept', { host: location.host }), location.host)
  const message = 'The session cookie was not kept. If publicUrl is an https address, browsers keep it there only'
  noteForOperator({ code: 'UNEXPECTED', message })
}

function showSignedIn(session: Session): void {
  ways.close()
  byId('who').replaceChildren(whoView(session, words))
  const isOther = wanted !== undefined && !isWanted(wanted, session)
  const other = isOther ? words.say('sign-in.wanted.other', { address: wanted.address }) : undefined
  fill(views.in, 'other', other, wanted?.address ?? '')
  reveal(views.in)
}

function showSignedOut(): void {
  reveal(views.out)
  ways.open(byId('ways'), values.startsOrders)
}

/**
 * Shows the session that another tab has signed in to, or that the session has ended: there, or on the phone that
 * approved it.
 */
function follow(session: Session | undefined): void {
  if ((session === undefined) === views.in.hidden) return
  if (session === undefined) showSignedOut()
  else showSignedIn(session)
  focusHeading(session === undefined ? views.out : views.in)
}

function reveal(view: HTMLElement): void {
  for (const other of Object.values(views)) other.hidden = other !== view
  document.body.toggleAttribute('data-waiting', false)
}

function focusHeading(view: HTMLElement): void {
  view.querySelector('h1')?.focus()
}

/** The wallet that an application asks for. */
type WantedWallet = Pick<Session, 'adapterId' | 'address'>

/** The wallet that the page's address names as `wallet={adapter_id}:{address}`; `undefined` if it names none. */
function wantedWallet(address: URL, adapterIds: readonly string[]): WantedWallet | undefined {
  const named = /^([^:]+):([\w: .-]{1,128})$/.exec(address.searchParams.get('wallet') ?? '')
  const [, adapterId = '', walletAddress = ''] = named ?? []
  return adapterIds.includes(adapterId) ? { adapterId, address: walletAddress } : undefined
}

function isWanted({ adapterId, address }: WantedWallet, session: Session): boolean {
  return session.adapterId === adapterId && isSameAddressText(session.address, address)
}
