import { createConnectTransport } from '@connectrpc/connect-web'
import { demoTexts } from '../../shared/texts/pages.ts'
import { CountersignClientError, createCountersignClient, type Session } from '../client/connect.ts'
import { PhoneSignIn } from './demo-phone.ts'
import { type Act, showSession, showSessions } from './demo-sessions.ts'
import { prepareSignOrders } from './demo-sign.ts'
import { DirectSignIn } from './demo-sign-in.ts'
import { byId } from './dom.ts'
import { openPage } from './open-page.ts'
import { clearUnavailableWallet, readHubAnswer } from './page-wallet.ts'
import { Tasks } from './tasks.ts'

/** The demo page: both ways to sign in, the session, and a signature order. The session is in the cookie only. */

// This page uses the generated clients.
const transport = createConnectTransport({ baseUrl: location.origin })
const client = createCountersignClient({ transport, autoPersistToken: false })
const views = { out: byId('signed-out'), in: byId('signed-in') }
const page = openPage<'demo'>(demoTexts, 'demo.title')
const { words, values } = page
const tasks = new Tasks({ page })
const act: Act = (work) =>
  tasks.run(async () => {
    try {
      await work()
    } catch (thrown) {
      if (!isSessionEnded(thrown)) throw thrown
      showEnded()
    }
  })

const accountLink = byId<HTMLAnchorElement>('account-link')
accountLink.href = values.accountPath
accountLink.hidden = values.accountPath === ''
byId('sign-out-button').addEventListener('click', () => void act(signOut))
byId('revoke-others-button').addEventListener('click', () => void act(revokeOthers))
clearUnavailableWallet(values)
const direct = new DirectSignIn({
  client,
  page,
  tasks,
  onSession: arrive,
})
const { startsOrders } = values
// With start keys, only a backend starts them, and two of the three things are left.
for (const id of ['sign-section', 'intro-text']) byId(id).hidden = !startsOrders
prepareSignOrders(client, words)
const phone = new PhoneSignIn({
  client,
  page,
  startsOrders,
  onSession: (session) => void act(() => arrive(session)),
})
void act(lookForSession).then(async () => {
  const answer = await readHubAnswer(values.appName)
  if (answer !== undefined && views.in.hidden) direct.resume(answer)
})
// From the back-forward cache: the session may have ended since, and a wallet at another site may have been left.
addEventListener('pageshow', ({ persisted }) => persisted && location.reload())
// The session has ended elsewhere: in another tab, or on the phone that approved it.
client.onSession((session) => setTimeout(() => session === undefined && !views.in.hidden && showEnded()))
document.addEventListener('visibilitychange', () => {
  if (document.visibilityState === 'visible' && !views.in.hidden) void act(lookForSession)
})

async function lookForSession(): Promise<void> {
  const session = await client.getCurrentSession()
  if (session !== undefined) {
    showSignedIn(session)
    await showSessions({ client, words, act })
  } else if (views.in.hidden) showSignedOut()
  else showEnded()
}

/** Whether the service refused a call because the session has ended. */
function isSessionEnded(thrown: unknown): boolean {
  if (!(thrown instanceof CountersignClientError) || views.in.hidden) return false
  return thrown.code === 'SESSION_INVALID' || thrown.code === 'SESSION_REQUIRED'
}

/** Says that the session was ended elsewhere. */
function showEnded(): void {
  showSignedOut()
  byId('ended').hidden = false
  byId('ended').focus()
}

/** Shows a new session. The focus moves at once, not when the lists are there: the button that had it is gone. */
async function arrive(session: Session): Promise<void> {
  showSignedIn(session)
  byId('session-title').focus()
  await showSessions({ client, words, act })
}

async function signOut(): Promise<void> {
  await client.signOut()
  showSignedOut()
  byId('direct-title').focus()
}

async function revokeOthers(): Promise<void> {
  await client.revokeOtherSessions()
  await showSessions({ client, words, act })
  byId('sessions-title').focus()
}

function showSignedIn(session: Session): void {
  sayWhetherSignedIn(true)
  byId('ended').hidden = true
  views.out.hidden = true
  phone.close()
  showSession(session, words)
  views.in.hidden = false
}

function showSignedOut(): void {
  sayWhetherSignedIn(false)
  views.in.hidden = true
  views.out.hidden = false
  // So that the wallet can open in the tap itself. If this fails, the sign-in fetches a nonce.
  client.prepareSignIn().catch(() => {})
}

function sayWhetherSignedIn(isSignedIn: boolean): void {
  const chip = byId('chip')
  chip.textContent = words.say(isSignedIn ? 'demo.in' : 'demo.out')
  chip.hidden = false
}
