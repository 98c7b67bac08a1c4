import { approveTexts } from '../../shared/texts/pages.ts'
import { isSameAddressText } from '../../shared/wallet-address.ts'
import { isPassing } from '../client/errors.ts'
import { CountersignClientError, type HandOver, type OrderChallenge, type PhoneOrder } from '../client/index.ts'
import { Countdown } from '../element/countdown.ts'
import type { FoundWallet } from '../wallets/found.ts'
import { answering } from '../wallets/found-sign-in.ts'
import { forgetHubAnswer, takeHubAnswer } from '../wallets/hub.ts'
import { byId, fill, showOnly } from './dom.ts'
import { type Ending, endingOf, endingOfInbox, endings } from './endings.ts'
import { HandOverPanel } from './hand-over-panel.ts'
import { forgetClaim, type HeldClaim, hold, isContinued, takeClaim } from './held-claim.ts'
import { openPage } from './open-page.ts'
import { asksFirst, clearUnavailableWallet, hubFor } from './page-wallet.ts'
import { pagePhoneCalls, ServiceClock } from './phone-calls.ts'
import { Poll } from './poll.ts'
import { OutcomeScreen, RequestScreen, siteName } from './screens.ts'
import { remembering, Signing } from './signing.ts'
import { type Remedy, Tasks } from './tasks.ts'
import { type Choice, WalletPanel } from './wallet-panel.ts'

/**
 * The approval page, which a claim URL opens on a phone, or the link of a hand-over in another of its browsers.
 *
 * It claims the order, or redeems a hand-over, only when the user taps "Continue". Link previews and mail scanners open
 * URLs, and some of them run scripts: if the page did this on load, they would take the order from the user. The tap
 * opens the rest of the screen that it is on.
 */

/** Codes for an account that may not approve. */
const wrongAccounts = ['WRONG_WALLET', 'WALLET_TAKEN', 'LOGIN_REFUSED'] as const
/** Codes after which the user has to sign again, possibly with another account. */
const wrongProofs: ReadonlySet<string> = new Set([...wrongAccounts, 'SIGNATURE_INVALID', 'ADDRESS_MISMATCH'])
/** Codes after which another wallet can approve, and the same one cannot. */
const wrongWallets: ReadonlySet<string> = new Set([...wrongAccounts, 'ADAPTER_UNKNOWN', 'CONTRACT_WALLET_NEEDS_RPC'])
/** Time for which "Continue" waits for what the service says of the order, in milliseconds. */
const previewMs = 4000
/** Time between two looks at the order, in milliseconds: while the user decides, and after the approval. */
const pollMs = { review: 5000, outcome: 2500 } as const

const page = await openPage<'approve'>(approveTexts)
const { words, values } = page
const { appName, inboxPath: inbox } = values
const continued = isContinued(location.pathname)
const clock = new ServiceClock()
const client = pagePhoneCalls(values.basePath, clock)
const reviewButton = byId<HTMLButtonElement>('review-button')
const notMeButton = byId<HTMLButtonElement>('not-me-button')
const rememberInput = byId<HTMLInputElement>('remember-input')

// Before the claim is taken, which changes the page's address. If the Hub's library does not load, the user can ask the
// Hub again.
const hubAnswer = await takeHubAnswer(hubFor(appName)).catch(() => undefined)
let held = takeClaim(values.claimUrlTemplate)
/** Whether the order is one of the user's inbox. */
let fromInbox = held !== undefined && 'inbox' in held.by
let challenge: OrderChallenge | undefined
/** Origin of the requester, once it is known. */
let origin: string | undefined
let choice: Choice | undefined
/** The wallet that was used last, ready or not. */
let last: FoundWallet | undefined
/** Ends the listening to the chosen wallet's account switches. */
let stopListening = (): void => {}

const tasks = new Tasks({ page, isHandled: settle, remedyOf, noticeOf })
const poll = new Poll(look)
const signing = new Signing(tasks)
const requestScreen = new RequestScreen(words, clock)
const outcomeScreen = new OutcomeScreen(words, clock, () => void poll.now())
const walletPanel = new WalletPanel({
  page,
  onUse: (found) => void tasks.runInstead((signal) => use(found, signal)),
  onApps: (areShown) => handOverPanel.keepReady(areShown),
  onOpenApp: () => {
    handOverPanel.take()
    know({ handedOver: 'wallet' })
  },
})
const handOverPanel = new HandOverPanel({
  words,
  clock,
  onOpen: () => void tasks.run((signal) => handOverPanel.open(signal)),
  make: makeTicket,
  onAddress: (address) => walletPanel.linkApps(address),
})
const countdown = new Countdown(
  (seconds) => requestScreen.refresh(seconds, signing.isWaiting),
  () => void poll.now(),
)

clearUnavailableWallet(values)
open()

reviewButton.addEventListener('click', () => void tasks.run(review))
notMeButton.addEventListener('click', () => end(endings.left))
byId('approve-button').addEventListener('click', () => void tasks.run(approve))
// Also during an approval: the user can decline until the service has it, and after it too.
byId('decline-button').addEventListener(
  'click',
  () => void tasks.runInstead((signal) => reject(endings.declined, signal)),
)
byId('stop-button').addEventListener('click', () => void tasks.run((signal) => reject(endings.stopped, signal)))
// The link of another order, opened in this tab, by a template with the order's identifier in the fragment.
addEventListener('hashchange', () => location.reload())
// Back from a wallet at another site, which took the place of this page: the page as it was still waits for its answer.
addEventListener('pageshow', ({ persisted }) => persisted && signing.isWaiting && location.reload())

/** The first screen: what this tab already knows, or the question whether to go on. */
function open(): void {
  forbidLeaving()
  const [, inboxOrder] = inbox === '' ? [] : location.pathname.split(`${inbox}/`)
  // Only a tap in the inbox claims.
  if (held === undefined && inboxOrder !== undefined) leaveToInbox(inboxOrder)
  else if (held === undefined) end(endings.linkIncomplete)
  // Nothing done here changes an approved order. An order that a wallet at another site has signed was reviewed before.
  else if (held.approved !== undefined) void tasks.run(review)
  else if (held.sent !== undefined && hubAnswer !== undefined) void tasks.run(review).then(() => tasks.run(resume))
  // The order is this tab's already, as after a reload; or the user has tapped it in the inbox.
  else if (orderOf(held) !== undefined || fromInbox) void tasks.run(review)
  else if (continued) show('continue', words.say('continue.title'))
  else {
    // The answers are in their place from the start, and wait for what they are about.
    byId('choice').hidden = false
    reviewButton.disabled = true
    setTimeout(showUnknown, previewMs)
    poll.start(pollMs.review)
    void poll.now()
  }
}

/** Shows the request without who asks, which the service has not said: the answer to "Continue" says it. */
function showUnknown(): void {
  if (!reviewButton.disabled) return
  requestScreen.fillNothing()
  show('request', words.say('start.title'))
}

/**
 * "Not me" only leaves: the order stays for the phone that it is for. So it is over once this tab has asked for the
 * order, which it may have got although no answer arrived.
 */
function forbidLeaving(): void {
  notMeButton.disabled = held?.asked === true
}

/** Leads to the order in the inbox, where its user signs in if need be. */
function leaveToInbox(orderId: string): void {
  location.replace(`${inbox}?order=${orderId}`)
}

/** Shows the requester next to the button that takes the order. Takes nothing, as link previews run this, too. */
async function preview({ orderId, by }: HeldClaim): Promise<void> {
  if (!('claimToken' in by)) return
  const seen = await client.previewOrder({ orderId, claimToken: by.claimToken })
  // The user may have left, or tapped "Continue".
  if (held === undefined || tasks.busy || challenge !== undefined || origin !== undefined) return
  origin = seen.origin
  const title = requestScreen.fillPreview(seen)
  show('request', title)
  countdown.start(seen.expiresAt - clock.now())
}

/** Takes the order, if this tab does not have it yet, and shows its challenge. */
async function review(signal: AbortSignal): Promise<void> {
  if (held === undefined) return
  const order = orderOf(held) ?? (await take(held, signal))
  challenge = await client.getOrderChallenge(order, { signal })
  origin = challenge.requester.origin
  fromInbox ||= challenge.fromInbox ?? false
  if (challenge.status === 'approved') return follow(challenge, challenge.returnCode)
  const title = requestScreen.fill(challenge, fromInbox)
  const unasked = walletPanel.offer(challenge.adapterId)
  // A wallet that asks its user stands before what it is for.
  const asks = unasked !== undefined && asksFirst(unasked)
  if (unasked !== undefined && !asks) await use(unasked, signal)
  // The order has ended while the wallet was asked.
  if (signal.aborted) return
  byId('continued').hidden = !continued
  countdown.stop()
  countdown.start(Math.min(challenge.expiresAt - clock.now(), challenge.expiresAt - challenge.issuedAt))
  requestScreen.open(show('request', title))
  poll.start(pollMs.review)
  if (asks) await use(unasked, signal)
}

/** Makes a wallet ready to sign: it may ask its user which account it is to be. */
async function use(found: FoundWallet, signal: AbortSignal): Promise<void> {
  const order = held && orderOf(held)
  if (order === undefined || challenge === undefined) return
  const ask = <T>(question: () => T): Promise<Awaited<T>> =>
    tasks.askWallet(words.say('wallet.asked', { wallet: found.name }), signal, question)
  last = found
  const connected = found.connect()
  const wallet = connected instanceof Promise ? await ask(() => connected) : connected
  const { adapterId = found.adapterId } = wallet
  const named = wallet.getAccount && (await ask(() => wallet.getAccount?.()))
  const account = named && { adapterId, ...named }
  if (account !== undefined || choice?.account !== undefined) {
    challenge = await client.getOrderChallenge(order, { account, signal })
    requestScreen.fillText(challenge)
  }
  const { expectedAddress } = challenge
  // A wallet in the page is asked for its address only if the order is for one wallet.
  const isAsked = found.kind === 'demo' || (found.kind === 'page' && expectedAddress !== undefined)
  const address = account?.address ?? (isAsked ? await ask(() => wallet.getAddress?.()) : undefined)
  const isOther = address !== undefined && expectedAddress !== undefined && !isSameAddressText(address, expectedAddress)
  stopListening()
  stopListening = wallet.onAccountChange?.((now) => changeAccount(found, now !== undefined)) ?? (() => {})
  const { wallet: remembered, forget, signedAddress } = remembering(wallet)
  const wanted = isOther ? expectedAddress : undefined
  choice = { found, wallet: remembered, forgetSignature: forget, signedAddress, account, address, wanted }
  walletPanel.choose(choice)
}

/**
 * Follows the user to the account that they switched to in the wallet. What it has been asked to sign, it refuses by
 * itself.
 */
function changeAccount(found: FoundWallet, isOpen: boolean): void {
  if (choice?.found !== found || tasks.busy) return
  forgetChoice()
  if (isOpen) void tasks.run((signal) => use(found, signal))
}

/** Makes the user continue with a wallet anew: its account is another one, or none. */
function forgetChoice(): void {
  choice = undefined
  walletPanel.choose(undefined)
}

/** Approves with what a wallet at another site has signed, after the way back from there. */
async function resume(signal: AbortSignal): Promise<void> {
  const { sent } = held ?? {}
  const found = sent && walletPanel.walletOf(sent.walletId)
  if (sent === undefined || found === undefined || hubAnswer === undefined) return
  await use(found, signal)
  if (choice !== undefined) choice = { ...choice, wallet: answering(choice.wallet, hubAnswer) }
  rememberInput.checked = sent.rememberComputer
  await approve(signal)
}

async function take({ orderId, by, claimKey }: HeldClaim, signal: AbortSignal): Promise<PhoneOrder> {
  know({ asked: true })
  forbidLeaving()
  const { challengeToken } = await claimed()
  know({ challengeToken })
  return { orderId, challengeToken }

  function claimed(): Promise<PhoneOrder> {
    if ('inbox' in by) return client.claimFromInbox({ orderId, claimKey }, signal)
    if ('ticket' in by) return client.redeemHandOver(by.ticket, { claimKey, signal })
    return client.claimOrder({ orderId, claimToken: by.claimToken }, { claimKey, signal })
  }
}

async function approve(signal: AbortSignal): Promise<void> {
  const order = held && orderOf(held)
  if (order === undefined || challenge === undefined) return
  // Another account is to sign. The user sees it, and its text, before.
  if (choice === undefined) return last && (await use(last, signal))
  const { found, wallet, account } = choice
  const rememberComputer = challenge.canRememberComputer && rememberInput.checked
  // A wallet at another site may take the place of this page.
  if (found.kind === 'window') know({ sent: { walletId: found.id, rememberComputer } })
  const text = found.kind === 'demo' ? '' : words.say('wallet.asked', { wallet: found.name })
  try {
    const { returnCode, finishBy } = await client.approveOrder(order, {
      challenge,
      account,
      wallet: signing.follow(wallet, text, signal),
      rememberComputer,
      signal,
    })
    const signer = choice?.signedAddress() ?? account?.address ?? choice?.address
    know({ who: { adapterId: account?.adapterId ?? found.adapterId, address: signer, name: found.name } })
    follow({ ...challenge, ...(finishBy === undefined ? {} : { finishBy }) }, returnCode)
  } catch (thrown) {
    const code = thrown instanceof CountersignClientError ? thrown.code : undefined
    if (thrown instanceof CountersignClientError && !isPassing(thrown) && code !== 'ORDER_EXPIRED') {
      // The service has judged what the wallet signed: the order no longer waits for that, neither here nor after a
      // reload.
      signing.end()
      know({ sent: undefined })
    }
    if (code === 'WALLET_WRONG_KEY') forgetChoice()
    if (code !== undefined && wrongProofs.has(code)) choice?.forgetSignature()
    throw thrown
  }
}

/** Rejects the order in any status. A finalized sign-in, and a wallet that was added, are taken back by it. */
async function reject(rejected: Ending, signal: AbortSignal): Promise<void> {
  const order = held && orderOf(held)
  if (order === undefined) return
  try {
    const { sessionEnded, walletUnlinked } = await client.rejectOrder(order, { signal })
    if (walletUnlinked !== undefined) end(walletUnlinked ? endings.walletRemoved : endings.walletStays)
    else if (sessionEnded === undefined) end(rejected)
    else end(sessionEnded ? endings.sessionEnded : endings.sessionGone)
  } catch (thrown) {
    const code = thrown instanceof CountersignClientError ? thrown.code : undefined
    // The signature of a sign order cannot be taken back, and an order is remembered for ten minutes.
    if (code === 'ORDER_FINALIZED') end(endings.signatureGiven)
    else if (code === 'ORDER_NOT_FOUND' && held?.approved !== undefined) end(endings.tooLate)
    else throw thrown
  }
}

/** Makes a ticket for another browser, which voids the last one. */
async function makeTicket(): Promise<HandOver> {
  const order = held && orderOf(held)
  if (order === undefined) throw new Error('there is no order to hand over')
  const ticket = await client.handOverOrder(order)
  if (held?.handedOver === undefined) know({ handedOver: 'browser' })
  return ticket
}

/** Asks the service what has become of the order. */
async function look(): Promise<void> {
  const order = held && orderOf(held)
  // A task asks the service itself, except while it waits for the wallet.
  const isFree = (): boolean => !tasks.busy || tasks.isAskingWallet
  if (held === undefined || !isFree()) return
  try {
    if (order === undefined) return await preview(held)
    const seen = await client.getOrderChallenge(order)
    if (seen.status === 'approved' && isFree()) follow(seen, seen.returnCode)
  } catch (thrown) {
    if (held === undefined || !(thrown instanceof CountersignClientError) || !isFree() || settle(thrown.code)) return
    // The next look or tap shows any other failure.
    showUnknown()
  }
}

/** Shows the approved order, and what its computer does next. */
function follow({ kind, requester, finishBy }: OrderChallenge, returnCode: string | undefined): void {
  const withCode = returnCode !== undefined
  forgetHubAnswer()
  const until = finishBy ?? clock.now()
  if (held?.approved === undefined) {
    know({ approved: { kind, origin: requester.origin, withCode, until, fromInbox, who: held?.who } })
  }
  const approved = held?.approved
  const isCode = approved !== undefined && returnCode !== undefined
  show('outcome', isCode ? outcomeScreen.showCode(approved, returnCode) : outcomeScreen.showApproved(approved))
  poll.start(fromInbox ? pollMs.review : pollMs.outcome)
}

/** Shows what a refusal says of the order. Returns whether it says anything. */
function settle(code: string): boolean {
  const approved = held?.approved
  if (fromInbox && held !== undefined && code.startsWith('SESSION_')) {
    leaveToInbox(held.orderId)
    return true
  }
  // It may be this tab's own claim, whose answer was lost: the tap shows.
  if (code === 'ORDER_ALREADY_CLAIMED' && held?.asked && !tasks.busy) return false
  // Another browser of the user has claimed it from the inbox since, or taken it over.
  if (code === 'ORDER_TOKEN_INVALID' && (held?.handedOver !== undefined || fromInbox)) {
    poll.stop()
    show('outcome', outcomeScreen.showMoved(held?.handedOver ?? 'browser', origin))
    return true
  }
  if (code === 'ORDER_FINALIZED' && approved !== undefined) {
    poll.stop()
    show('outcome', outcomeScreen.showFinalized(approved), approved.kind !== 'sign')
    return true
  }
  const ending = (approved && endingOfApproved(code, approved.withCode)) ?? endingOfSigning(code) ?? endingOf(code)
  if (ending !== undefined) end(ending)
  return ending !== undefined
}

/** Action that helps after a refusal, in place of another try. */
function remedyOf(code: string): Remedy | undefined {
  if (challenge === undefined || !wrongWallets.has(code)) return undefined
  return { text: words.say('wallet.another'), act: () => walletPanel.open() }
}

/** What a refusal says on a phone in other words than on a device that is signed in. */
function noticeOf(code: string): string | undefined {
  if (fromInbox && code === 'WRONG_WALLET') return words.say('review.inbox.wrong-wallet')
  // The session is that of the device that started the order.
  return code === 'SESSION_INVALID' ? words.say('task.account-unusable', { app: appName }) : undefined
}

/** Endings of an order that was approved on this phone. */
function endingOfApproved(code: string, withCode: boolean): Ending | undefined {
  if (code === 'ORDER_EXPIRED') return withCode ? endings.codeLate : endings.notFinished
  if (code === 'ORDER_REJECTED' && withCode) return endings.wrongReturnCodes
  return undefined
}

/** Endings of an order that the wallet was too slow for. */
function endingOfSigning(code: string): Ending | undefined {
  const wasAsked = signing.hasBegun || (held?.sent !== undefined && hubAnswer !== undefined)
  return code === 'ORDER_EXPIRED' && wasAsked ? endings.expiredSigning : undefined
}

function end(ending: Ending): void {
  const { seal, name, hasAccountLink = false } = fromInbox ? endingOfInbox(ending) : ending
  const root = byId('ended')
  root.dataset.seal = seal
  const title = words.say(`ending.${name}.title`)
  fill(root, 'ending', title)
  // Of an order that cannot be read, the page knows its own site only.
  fill(root, 'endingAbout', words.join(siteName(origin ?? location.origin), words.time(clock.now())))
  fill(root, 'advice', words.say(`ending.${name}.text`))
  poll.stop()
  outcomeScreen.leave()
  forgetClaim()
  forgetHubAnswer()
  held = undefined
  show('ended', title, hasAccountLink)
}

/**
 * Shows a section under this title, and the link to the account in the bar if that is the way on. Returns whether it is
 * new to the user, who then has the focus on its heading.
 */
function show(id: string, title: string, hasAccountLink = false): boolean {
  const section = byId(id)
  const pageTitle = `${title} · ${appName}`
  const isNew = Boolean(section.hidden) || document.title !== pageTitle
  document.title = pageTitle
  byId('inbox-link').hidden = !fromInbox || inbox === '' || id === 'request'
  // A service without accounts of its own has no page of them.
  byId('account-link').hidden = !hasAccountLink || values.accountPath === ''
  const isClaimed = challenge !== undefined
  byId('choice').hidden = id !== 'request' && id !== 'continue'
  reviewButton.disabled = false
  for (const button of [reviewButton, notMeButton]) button.hidden = isClaimed
  byId('decline-button').hidden = !isClaimed
  if (id !== 'request') {
    requestScreen.leave()
    // The wallet's answer is not needed any more.
    if (tasks.isAskingWallet) tasks.abort()
    countdown.stop()
    handOverPanel.hide()
  }
  // Not again for what is there already: the focus would jump to its heading.
  if (isNew) showOnly(section)
  return isNew
}

/** Keeps what became known of the order, here and for a reload. */
function know(more: Partial<HeldClaim>): void {
  if (held !== undefined) held = { ...held, ...more }
  hold(more)
}

function orderOf({ orderId, challengeToken }: HeldClaim): PhoneOrder | undefined {
  return challengeToken === undefined ? undefined : { orderId, challengeToken }
}
