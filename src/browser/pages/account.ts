import { returnTarget } from '../../shared/return-path.ts'
import { accountTexts } from '../../shared/texts/pages.ts'
import { shortAddress } from '../../shared/wallet-address.ts'
import type { ConnectedApp, InboxOrder, Session, UserWallet } from '../client/index.ts'
import { loadOnDemand } from '../client/page.ts'
import { findWallets } from '../wallets/find.ts'
import { cookieClient, signInAddress } from './cookie-client.ts'
import { byId, element, fill, write } from './dom.ts'
import { openPage } from './open-page.ts'
import { clearUnavailableWallet, wantedWallets } from './page-wallet.ts'
import { type Row, showRows } from './rows.ts'
import { SessionLists } from './session-lists.ts'
import { Tasks } from './tasks.ts'
import { walletList } from './wallet-list.ts'
import { nameOfKind } from './who.ts'

/**
 * The account page: where the user is signed in, the user's wallets, known computers and connected applications. All
 * calls use the cookie and are under the base path, so that the page works on a host that forward auth protects. What
 * needs a new sign-in leads to the sign-in page and back, where the button is offered again: coming back does nothing
 * by itself.
 */

const page = await openPage<'account'>(accountTexts, { title: 'account.title', readsLocales: true })
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
/** What was done last. */
const said = Object.assign(element('p', 'said'), { id: 'said' })
/** Leaves the way in which a wallet is being added; does nothing if there is none. */
let leaveAdding = (): void => {}

clearUnavailableWallet(values)
byId('sign-out-button').addEventListener('click', () => {
  void tasks.run(async () => {
    await client.signOut()
    signIn()
  })
})
byId('add-wallet-button').addEventListener('click', chooseWallet)
byId('cancel-button').addEventListener('click', cancelAdding)
byId('adding').addEventListener('keydown', ({ key }) => key === 'Escape' && cancelAdding())
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
 * Shows all. After an action, moves the focus to the heading of its section, because its button may be gone, and says
 * there what was done; at the page's own heading if the section is gone, too.
 */
async function show(focused?: string, done = ''): Promise<void> {
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
  showRows('apps', apps.map(appRow), words)
  byId('account').hidden = false
  document.body.toggleAttribute('data-waiting', false)
  said.remove()
  if (focused === undefined) return
  const section = byId(focused)
  const heading = section.hidden ? byId('account').querySelector('h1') : section.querySelector('h2')
  write(said, done)
  // Read with the heading, which has the focus.
  heading?.setAttribute('aria-describedby', said.id)
  if (section.hidden) byId('account').append(said)
  else heading?.after(said)
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
  leaveAdding()
  const add = byId('add-wallet-button')
  add.hidden = isByOrder
  add.classList.toggle('primary', isOnly)
  add.classList.toggle('plain', !isOnly)
  byId('link-button').hidden = isByOrder
  byId('add-later').hidden = isByOrder || !hasInbox
  // Sessions that an order made may not change wallets, and the only wallet stays.
  const mayRemove = !isByOrder && !isOnly
  const kinds = wallets.map(({ adapterId }) => adapterId)
  const row = (wallet: UserWallet, index: number): Row => {
    const { adapterId, address, linkedAt, current } = wallet
    // Two of a kind have numbers.
    const isOneOfKind = kinds.indexOf(adapterId) === kinds.lastIndexOf(adapterId)
    const number = kinds.slice(0, index + 1).filter((kind) => kind === adapterId).length
    const title = isOneOfKind ? nameOfKind(adapterId) : `${nameOfKind(adapterId)} ${number}`
    const added = words.say('account.added', { time: words.day(linkedAt) })
    const note = current ? `${added} · ${words.say('account.this-wallet')}` : added
    const remove = () => act('wallets', () => client.unlinkWallet(wallet).then(() => words.say('account.removed')))
    const question = words.say('account.remove.question', { wallet: shortAddress(address) })
    const action = mayRemove && !current ? { text: words.say('account.remove'), act: remove, question } : undefined
    return { title, note, wallet, action }
  }
  showRows('wallets', wallets.map(row), words)
}

/** Shows a way to add a wallet in the place of the buttons for it. `leave` ends what it has begun. */
function openAdding(title: string, hasCancel: boolean, leave: () => void, ...content: readonly HTMLElement[]): void {
  const buttons = [byId('add-wallet-button'), byId('link-button')]
  for (const button of buttons) button.hidden = true
  const panel = byId('adding')
  fill(panel, 'adding', title)
  byId('adding-place').replaceChildren(...content)
  byId('cancel-button').hidden = !hasCancel
  panel.hidden = false
  panel.querySelector('h3')?.focus()
  leaveAdding = () => {
    const hadFocus = panel.contains(document.activeElement)
    leaveAdding = () => {}
    leave()
    byId('adding-place').replaceChildren()
    panel.hidden = true
    for (const button of buttons) button.hidden = false
    if (hadFocus) buttons[0]?.focus()
  }
}

/** Lists the wallets of this device, of which the user adds one. */
function chooseWallet(): void {
  const finder = findWallets(wantedWallets(page))
  const elsewhere = words.say('wallet.none.account')
  const list = walletList({
    finder,
    words,
    advice: { onComputer: elsewhere, onPhone: elsewhere },
    onChoose: (found) => {
      void tasks.run(async (signal) => {
        const wallet = await tasks.askWallet(words.say('account.confirm', { wallet: found.name }), signal, () =>
          found.connect(),
        )
        await client.linkWallet({ wallet, signal })
        await show('wallets', words.say('account.wallet-added'))
      })
    },
  })
  openAdding(words.say('account.add'), true, () => finder.stop(), list)
}

function cancelAdding(): void {
  if (tasks.isAskingWallet) tasks.abort()
  leaveAdding()
}

/** Adds a wallet of another device, on which it approves an order of this page. */
async function linkElsewhere(signal: AbortSignal): Promise<void> {
  const [order, { linkPanel }] = await Promise.all([
    client.startOrder({ kind: 'link', signal }),
    loadOnDemand(() => import('./link-panel.ts')),
  ])
  const onEnd = (isAdded: boolean): void => {
    if (isAdded) void tasks.run(() => show('wallets', words.say('account.wallet-added')))
    else leaveAdding()
  }
  // Its own button cancels the order, as leaving the page does.
  openAdding(words.say('account.link'), false, () => {}, ...linkPanel({ client, words, order, onEnd }))
}

function appRow({ clientId, name, host, lastUsedAt }: ConnectedApp): Row {
  const used = words.say('account.used', { time: words.day(lastUsedAt) })
  const note = host === '' ? used : `${host} · ${used}`
  const disconnect = () =>
    act('apps', () => client.disconnectApp(clientId).then(() => words.say('account.disconnected', { app: name })))
  return { title: name, note, action: { text: words.say('account.disconnect'), act: disconnect } }
}

/** Does what a button of a section is for, shows all anew, and says what was done. */
function act(section: string, work: () => Promise<string>): void {
  void tasks.run(async () => show(section, await work()))
}
