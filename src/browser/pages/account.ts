import { returnTarget } from '../../shared/return-path.ts'
import { accountTexts } from '../../shared/texts/pages.ts'
import { shortAddress } from '../../shared/wallet-address.ts'
import type { ConnectedApp, InboxOrder, Session, UserWallet } from '../client/index.ts'
import { loadOnDemand } from '../client/page.ts'
import { findWallets } from '../wallets/index.ts'
import { cookieClient, signInAddress } from './cookie-client.ts'
import { byId, fill } from './dom.ts'
import { openPage } from './open-page.ts'
import { clearUnavailableWallet, wantedWallets } from './page-wallet.ts'
import { type Row, showRows } from './rows.ts'
import { SessionLists } from './session-lists.ts'
import { Tasks } from './tasks.ts'
import { walletList } from './wallet-list.ts'

/**
 * The account page: where the user is signed in, the user's wallets, known computers and connected applications. All
 * calls use the cookie and are under the base path, so that the page works on a host that forward auth protects. What
 * needs a new sign-in leads to the sign-in page and back, where the button is offered again: coming back does nothing
 * by itself.
 */

const page = openPage<'account'>(accountTexts, { title: 'account.title' })
const { words, values } = page
/** Whether backends start orders, so that some may be for the user's inbox. */
const hasInbox = !values.startsOrders
const client = cookieClient(values)
const tasks = new Tasks({
  page,
  isBesideTap: true,
  remedyOf: (code) =>
    code === 'SESSION_NOT_FRESH' ? { text: words.say('account.again'), act: () => signIn(true) } : undefined,
})
const lists = new SessionLists({ client, words, act })

clearUnavailableWallet(values)
byId('sign-out-button').addEventListener('click', () => {
  void tasks.run(async () => {
    await client.signOut()
    signIn()
  })
})
byId('add-wallet-button').addEventListener('click', chooseWallet)
byId('link-button').addEventListener('click', () => void tasks.run(linkElsewhere))
// Another tab signed out, or signed in with another wallet. After a sign-out in this tab, the page has left by then.
client.onSession(() => setTimeout(() => location.reload()))
// From the back-forward cache: the session may have ended since.
addEventListener('pageshow', ({ persisted }) => persisted && location.reload())
void tasks.run(() => show())

/** Leads to the sign-in page, and from there back here. */
function signIn(isAgain = false): void {
  location.replace(signInAddress(values, isAgain))
}

/**
 * Shows all, and moves the focus to a section after an action, whose button may be gone; to the page's if that is, too.
 */
async function show(focused?: string): Promise<void> {
  if (!values.maybeSignedIn) return signIn()
  // At once: on a slow network, each answer takes seconds.
  const loading = Promise.all([lists.load(), client.listWallets(), client.listConnectedApps()])
  loading.catch(() => {})
  const own = await client.getCurrentSession()
  if (own === undefined) return signIn()
  // Sessions that an order made see none.
  const asked = hasInbox && own.orderId === undefined ? client.listInbox() : undefined
  const [[sessions, wallets, apps], requests] = await Promise.all([loading, asked])
  showWayBack(apps)
  showRequests(requests)
  showWallets(own, wallets)
  lists.show(own, sessions)
  showRows('apps', apps.map(appRow))
  byId('account').hidden = false
  document.body.toggleAttribute('data-waiting', false)
  if (focused === undefined) return
  const section = byId(focused)
  const heading = section.hidden ? byId('account').querySelector('h1') : section.querySelector('h2')
  heading?.focus()
}

/**
 * Links to the application that led here: at the parameter `returnTo`, a path on this host, or where a connected
 * application is.
 */
function showWayBack(apps: readonly ConnectedApp[]): void {
  const link = byId<HTMLAnchorElement>('back-link')
  const page = new URL(location.href)
  const from = URL.canParse(document.referrer) ? new URL(document.referrer) : undefined
  const app = apps.find(({ host }) => host !== '' && host === from?.host)
  const target = page.searchParams.has('returnTo') ? returnTarget(page) : app && from
  link.hidden = target === undefined
  if (target === undefined) return
  link.href = target.href
  link.textContent = words.say('account.back', { app: app?.name ?? values.appName })
}

/** Counts the requests that wait for the user, if there is an inbox. */
function showRequests(requests: readonly InboxOrder[] | undefined): void {
  const section = byId('requests')
  const count = requests?.length ?? 0
  section.hidden = requests === undefined
  const text = count === 0 ? 'account.requests.none' : 'account.requests.count'
  fill(section, 'waiting', words.say(text, { count: String(count) }))
  byId('requests-link').classList.toggle('primary', count > 0)
  byId('requests-link').classList.toggle('plain', count === 0)
}

function showWallets(own: Session, wallets: readonly UserWallet[]): void {
  const section = byId('wallets')
  const isByOrder = own.orderId !== undefined
  const isOnly = wallets.length < 2
  const advice = isOnly ? words.say(isByOrder ? 'account.second.elsewhere' : 'account.second') : undefined
  fill(section, 'advice', advice)
  byId('link-panel').replaceChildren()
  const add = byId('add-wallet-button')
  add.hidden = isByOrder
  add.classList.toggle('primary', isOnly)
  add.classList.toggle('plain', !isOnly)
  byId('link-button').hidden = isByOrder
  byId('add-later').hidden = isByOrder || !hasInbox
  // Sessions that an order made may not change wallets, and the only wallet stays.
  const mayRemove = !isByOrder && !isOnly
  const row = (wallet: UserWallet): Row => {
    const since = words.say('account.since', { time: words.moment(wallet.linkedAt) })
    const note = wallet.current ? `${since} · ${words.say('account.this-wallet')}` : since
    const remove = () => act('wallets', () => client.unlinkWallet(wallet))
    const action = mayRemove && !wallet.current ? { text: words.say('account.remove'), act: remove } : undefined
    return { title: shortAddress(wallet.address), note, wallet, action }
  }
  showRows('wallets', wallets.map(row))
}

/** Lists the wallets of this device, of which the user adds one. */
function chooseWallet(): void {
  const place = byId('wallet-choice')
  const finder = findWallets(wantedWallets(page))
  const list = walletList({
    finder,
    words,
    advice: words.say('wallet.none.account'),
    onChoose: (found) => {
      void tasks.run(async (signal) => {
        const wallet = await tasks.askWallet(words.say('account.confirm', { wallet: found.name }), signal, () =>
          found.connect(),
        )
        await client.linkWallet({ wallet, signal })
        finder.stop()
        place.hidden = true
        await show('wallets')
      })
    },
  })
  place.replaceChildren(list)
  place.hidden = false
  byId('add-wallet-button').hidden = true
  byId('wallets').querySelector('h2')?.focus()
}

/** Adds a wallet of another device, on which it approves an order of this page. */
async function linkElsewhere(signal: AbortSignal): Promise<void> {
  const [order, { openLinkPanel }] = await Promise.all([
    client.startOrder({ kind: 'link', signal }),
    loadOnDemand(() => import('./link-panel.ts')),
  ])
  for (const id of ['add-wallet-button', 'wallet-choice', 'link-button']) byId(id).hidden = true
  openLinkPanel(byId('link-panel'), { client, words, order, onEnd: () => void tasks.run(() => show('wallets')) })
  byId('wallets').querySelector('h2')?.focus()
}

function appRow({ clientId, name, host, lastUsedAt }: ConnectedApp): Row {
  const used = words.say('account.used', { time: words.moment(lastUsedAt) })
  const note = host === '' ? used : `${host} · ${used}`
  const disconnect = () => act('apps', () => client.disconnectApp(clientId))
  return { title: name, note, action: { text: words.say('account.disconnect'), act: disconnect } }
}

/** Does what a button of a section is for, and shows all anew. */
function act(section: string, work: () => Promise<unknown>): void {
  void tasks.run(async () => {
    await work()
    await show(section)
  })
}
