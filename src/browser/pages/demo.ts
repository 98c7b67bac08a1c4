import { createConnectTransport } from '@connectrpc/connect-web'
import { isLoopbackHost } from '../../shared/origin.ts'
import { demoTexts } from '../../shared/texts/pages.ts'
import { CountersignClientError, createCountersignClient, type Session } from '../client/connect.ts'
import { isPhone } from '../client/page.ts'
import { howToReach } from './claim-notes.ts'
import { lanCommand, prepareSignOrders } from './demo-sign.ts'
import { byId, fill } from './dom.ts'
import { openPage } from './open-page.ts'
import { clearUnavailableWallet } from './page-wallet.ts'
import { SessionLists } from './session-lists.ts'
import { SignInWays } from './sign-in-ways.ts'
import { Tasks } from './tasks.ts'
import { whoView } from './who.ts'

/** The demo page: the ways to sign in, the session, and a signature order. The session is in the cookie only. */

// This page uses the generated clients.
const transport = createConnectTransport({ baseUrl: location.origin })
const client = createCountersignClient({ transport, autoPersistToken: false })
const page = await openPage<'demo'>(demoTexts, { title: 'demo.title' })
const { words, values } = page
const views = { out: byId('signed-out'), in: byId('signed-in') }
const showCodeButton = byId('show-code-button')
const accountLink = byId<HTMLAnchorElement>('account-link')
const tasks = new Tasks({ page })
const lists = new SessionLists({
  client,
  words,
  act: (_, work) => {
    void run(async () => {
      await work()
      await showLists()
      byId('sessions-title').focus()
    })
  },
})
const ways = new SignInWays({
  client,
  page,
  lanCommand,
  onSession: (session) => void run(() => arrive(session)),
  onNotListed: (error) => tasks.sayNotListed(error),
})
let own: Session | undefined

fill(views.out, 'text', words.say('sign-in.text', { host: location.host }), location.host)
accountLink.href = values.accountPath
accountLink.hidden = values.accountPath === ''
// With start keys, only a backend starts orders of other kinds.
for (const id of ['sign-section', 'intro-text']) byId(id).hidden = !values.startsOrders
if (isLoopbackHost(location.hostname) && !isPhone()) {
  byId('lan-note').replaceChildren(...howToReach(lanCommand, words))
  byId('lan-note').hidden = false
}
clearUnavailableWallet(values)
prepareSignOrders(client, words)
showCodeButton.addEventListener('click', () => {
  ways.close()
  openWays(true)
  byId('sign-in-title').focus()
})
byId('sign-out-button').addEventListener('click', () => void run(signOut))
// From the back-forward cache: the session may have ended since, and a wallet at another site may have been left.
addEventListener('pageshow', ({ persisted }) => persisted && location.reload())
// The session has ended elsewhere: in another tab, or on the phone that approved it.
client.onSession((session) => setTimeout(() => session === undefined && own !== undefined && showEnded()))
document.addEventListener('visibilitychange', () => {
  if (document.visibilityState === 'visible' && own !== undefined) void run(lookForSession)
})
void run(lookForSession)

/** Runs a task. If the service refuses a call because the session has ended, the page says so. */
async function run(work: () => Promise<void>): Promise<void> {
  await tasks.run(async () => {
    try {
      await work()
    } catch (thrown) {
      const code = thrown instanceof CountersignClientError ? thrown.code : undefined
      if (own === undefined || (code !== 'SESSION_INVALID' && code !== 'SESSION_REQUIRED')) throw thrown
      showEnded()
    }
  })
}

async function lookForSession(): Promise<void> {
  const session = await client.getCurrentSession()
  if (session !== undefined) await showSignedIn(session)
  else if (own === undefined) showSignedOut()
  else showEnded()
}

/** Shows a new session. The focus moves at once, not when the lists are there: the button that had it is gone. */
async function arrive(session: Session): Promise<void> {
  const lists = showSignedIn(session)
  byId('session-title').focus()
  await lists
}

async function signOut(): Promise<void> {
  await client.signOut()
  showSignedOut()
  byId('sign-in-title').focus()
}

/** Says that the session was ended elsewhere. */
function showEnded(): void {
  showSignedOut()
  byId('ended').hidden = false
  byId('ended').focus()
}

async function showSignedIn(session: Session): Promise<void> {
  own = session
  const since = { time: words.moment(session.createdAt) }
  ways.close()
  byId('who').replaceChildren(whoView(session, words))
  const how = session.orderId === undefined ? 'demo.session.device' : 'demo.session.phone'
  fill(views.in, 'since', words.say(how, since))
  byId('ended').hidden = true
  views.out.hidden = true
  views.in.hidden = false
  document.body.toggleAttribute('data-waiting', false)
  await showLists()
}

async function showLists(): Promise<void> {
  const loaded = await lists.load()
  if (own !== undefined) lists.show(own, loaded)
}

function showSignedOut(): void {
  own = undefined
  for (const id of ['signed-in', 'sessions', 'computers']) byId(id).hidden = true
  views.out.hidden = false
  document.body.toggleAttribute('data-waiting', false)
  // On a phone, the element starts an order once its user asks for another device.
  openWays(isPhone())
}

/** Offers the ways to sign in. Without `startsOrders`, a button asks for the code: opening the demo starts no order. */
function openWays(startsOrders: boolean): void {
  ways.open(byId('ways'), startsOrders)
  showCodeButton.hidden = startsOrders
}
