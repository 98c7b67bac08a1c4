import { Countdown } from '../client/element/countdown.ts'
import { CountersignClientError, type OrderChallenge, type PhoneOrder, type Wallet } from '../client/index.ts'
import { showBrand } from './brand.ts'
import { byId, fill, fillTexts, metaContent, showOnly } from './dom.ts'
import { type Ending, endingOf, endings } from './endings.ts'
import { isContinued } from './hand-over-link.ts'
import { HandOverPanel } from './hand-over-panel.ts'
import { countWrongCode, forgetClaim, type HeldClaim, hold, takeClaim } from './held-claim.ts'
import { OutcomeScreen } from './outcome-screen.ts'
import { findWallet } from './page-wallet.ts'
import { phoneCalls } from './phone-calls.ts'
import { Poll } from './poll.ts'
import { ReviewScreen } from './review-screen.ts'
import { ServiceClock } from './service-clock.ts'
import { Tasks } from './tasks.ts'
import { chooseWords, readOperatorTexts } from './texts/words.ts'

/**
 * The approval page, which a claim URL opens on a phone, or the link of a hand-over in another of its browsers.
 *
 * It claims the order only when the user taps "Review the request", and redeems a hand-over only when the user taps "Continue
 * here". Link previews and mail scanners open URLs, and some of them run scripts: if the page did this on load, they would take
 * the order from the user.
 */

const maxWrongCodes = 3
/** Time that a computer has at least to finish with a return code, and without, in milliseconds. */
const finishMs = { withCode: 180_000, without: 60_000 } as const

const continued = isContinued(location.pathname)
const appName = document.title
const words = chooseWords(navigator.languages, readOperatorTexts(metaContent('countersign-texts')))
const clock = new ServiceClock()
const client = phoneCalls(metaContent('countersign-base-path'), clock)
const sections = ['start', 'continue', 'review', 'outcome', 'ended'].map((id) => byId(id))
const codeInput = byId<HTMLInputElement>('code-input')
const rememberInput = byId<HTMLInputElement>('remember-input')

let held = takeClaim(metaContent('countersign-claim-url'))
let challenge: OrderChallenge | undefined
let wallet: Wallet | undefined

const tasks = new Tasks({ words, isHandled: settle })
const poll = new Poll(look)
const reviewScreen = new ReviewScreen(words, clock)
const outcomeScreen = new OutcomeScreen(words, clock, () => void poll.now())
const handOverPanel = new HandOverPanel(words, clock, () => void tasks.run(handOver))
const countdown = new Countdown(
  (seconds) => reviewScreen.refresh(seconds),
  () => void poll.now(),
)

document.documentElement.lang = words.language
document.documentElement.dir = words.direction
fillTexts((key) => words.text(key))
showBrand()
open()

byId('review-button').addEventListener('click', () => void tasks.run(review))
byId('continue-button').addEventListener('click', () => void tasks.run(review))
byId('approve-button').addEventListener('click', () => void tasks.run(approve))
// Also during an approval: the user can decline until the service has it, and after it too.
byId('decline-button').addEventListener('click', () => void tasks.runInstead(decline))
byId('stop-button').addEventListener('click', () => void tasks.run(stop))
codeInput.addEventListener('keydown', ({ key }) => key === 'Enter' && void tasks.run(approve))
// The link of another order, opened in this tab, by a template with the order's identifier in the fragment.
addEventListener('hashchange', () => location.reload())

/** The first screen: what this tab already knows, or the question whether to go on. */
function open(): void {
  if (held === undefined) end(endings.linkIncomplete)
  // An order that is already approved changes by nothing that is done here.
  else if (held.approved !== undefined) void tasks.run(review)
  else show(continued ? 'continue' : 'start', words.say('page.title'))
}

/** Takes the order, if this tab does not have it yet, and shows its challenge. */
async function review(signal: AbortSignal): Promise<void> {
  if (held === undefined) return
  const order = orderOf(held) ?? (await take(held, signal))
  challenge = await client.getOrderChallenge(order, { signal })
  if (challenge.status === 'approved') return follow(challenge, challenge.returnCode)
  wallet = findWallet(challenge)
  const title = reviewScreen.fill(challenge, wallet)
  byId('continued').hidden = !continued
  countdown.stop()
  countdown.start(Math.min(challenge.expiresAt - clock.now(), challenge.expiresAt - challenge.issuedAt))
  show('review', title)
  reviewScreen.fold()
}

async function take({ orderId, by, claimKey }: HeldClaim, signal: AbortSignal): Promise<PhoneOrder> {
  const { challengeToken } =
    'ticket' in by
      ? await client.redeemHandOver(by.ticket, { claimKey, signal })
      : await client.claimOrder({ orderId, claimToken: by.claimToken }, { claimKey, signal })
  know({ challengeToken })
  return { orderId, challengeToken }
}

async function approve(signal: AbortSignal): Promise<void> {
  const order = held && orderOf(held)
  if (order === undefined || challenge === undefined || wallet === undefined) return
  const confirmationCode = challenge.confirmationCodeRequired ? codeInput.value.trim() : undefined
  if (confirmationCode !== undefined && !/^[0-9]{6}$/.test(confirmationCode)) {
    return reviewScreen.showCodeError(words.say('enter.length'))
  }
  const rememberComputer = challenge.canRememberComputer && rememberInput.checked
  try {
    const { returnCode } = await client.approveOrder(order, {
      challenge,
      wallet,
      confirmationCode,
      rememberComputer,
      signal,
    })
    follow(challenge, returnCode)
  } catch (thrown) {
    if (!(thrown instanceof CountersignClientError && thrown.code === 'CONFIRMATION_CODE_WRONG')) throw thrown
    await wrongCode(order, signal)
  }
}

/** The service counts the wrong codes. After the last one, the order is rejected. */
async function wrongCode(order: PhoneOrder, signal: AbortSignal): Promise<void> {
  const left = Math.max(1, maxWrongCodes - countWrongCode())
  try {
    await client.getOrderChallenge(order, { signal })
  } catch (thrown) {
    if (!(thrown instanceof CountersignClientError && thrown.code === 'ORDER_REJECTED')) throw thrown
    return end(endings.wrongCodes)
  }
  reviewScreen.showCodeError(words.say('enter.wrong', { count: left }))
  codeInput.select()
}

async function decline(signal: AbortSignal): Promise<void> {
  await reject(endings.declined, signal)
}

async function stop(signal: AbortSignal): Promise<void> {
  await reject(endings.stopped, signal)
}

/** Rejects the order, whatever it has come to. A finalized sign-in is taken back by it. */
async function reject(rejected: Ending, signal: AbortSignal): Promise<void> {
  const order = held && orderOf(held)
  if (order === undefined) return
  try {
    const { sessionEnded } = await client.rejectOrder(order, { signal })
    if (sessionEnded === undefined) end(rejected)
    else end(sessionEnded ? endings.sessionEnded : endings.sessionGone)
  } catch (thrown) {
    const code = thrown instanceof CountersignClientError ? thrown.code : undefined
    // The signature of a sign order cannot be taken back, and an order is remembered for ten minutes.
    if (code === 'ORDER_FINALIZED') end(endings.signatureGiven)
    else if (code === 'ORDER_NOT_FOUND' && held?.approved !== undefined) end(endings.tooLate)
    else throw thrown
  }
}

async function handOver(signal: AbortSignal): Promise<void> {
  const order = held && orderOf(held)
  if (order === undefined) return
  const ticket = await client.handOverOrder(order, { signal })
  know({ handedOver: true })
  handOverPanel.show(ticket)
  poll.start()
}

/** Asks the service what has become of the order. */
async function look(): Promise<void> {
  const order = held && orderOf(held)
  const isAnyoneWaiting = challenge !== undefined || held?.approved !== undefined
  if (order === undefined || !isAnyoneWaiting || tasks.busy) return
  try {
    const seen = await client.getOrderChallenge(order)
    if (seen.status === 'approved' && !tasks.busy) follow(seen, seen.returnCode)
  } catch (thrown) {
    // The next look or tap shows any other failure.
    if (thrown instanceof CountersignClientError && !tasks.busy) settle(thrown.code)
  }
}

/** Shows the approved order, and what its computer does next. */
function follow({ kind, requester, expiresAt }: OrderChallenge, returnCode: string | undefined): void {
  const withCode = returnCode !== undefined
  const until = Math.max(expiresAt, clock.now() + (withCode ? finishMs.withCode : finishMs.without))
  if (held?.approved === undefined) know({ approved: { kind, origin: requester.origin, withCode, until } })
  const approved = held?.approved
  const isCode = approved !== undefined && returnCode !== undefined
  show('outcome', isCode ? outcomeScreen.showCode(approved, returnCode) : outcomeScreen.showApproved())
  poll.start()
}

/** Shows what a refusal says of the order. Returns whether it says anything. */
function settle(code: string): boolean {
  const approved = held?.approved
  if (code === 'ORDER_TOKEN_INVALID' && held?.handedOver) {
    poll.stop()
    show('outcome', outcomeScreen.showMoved())
    return true
  }
  if (code === 'ORDER_FINALIZED' && approved !== undefined) {
    poll.stop()
    show('outcome', outcomeScreen.showFinalized(approved))
    return true
  }
  const ending = (approved && endingOfApproved(code, approved.withCode)) ?? endingOf(code)
  if (ending !== undefined) end(ending)
  return ending !== undefined
}

/** Endings of an order that was approved on this phone. */
function endingOfApproved(code: string, withCode: boolean): Ending | undefined {
  if (code === 'ORDER_EXPIRED') return withCode ? endings.codeLate : endings.notFinished
  if (code === 'ORDER_REJECTED' && withCode) return endings.wrongReturnCodes
  return undefined
}

function end({ seal, name }: Ending): void {
  const root = byId('ended')
  root.dataset.seal = seal
  const title = words.say(`ending.${name}.title`)
  fill(root, 'ending', title)
  fill(root, 'advice', words.say(`ending.${name}.text`))
  poll.stop()
  outcomeScreen.leave()
  forgetClaim()
  held = undefined
  show('ended', title)
}

/** Shows a section under this title. */
function show(id: string, title: string): void {
  const section = byId(id)
  const isNew = section.hidden || document.title !== pageTitle(title)
  document.title = pageTitle(title)
  byId('choice').hidden = id !== 'review'
  if (id !== 'review') {
    countdown.stop()
    handOverPanel.hide()
  }
  // Not again for what is there already: the focus would jump to its heading.
  if (isNew) showOnly(section, sections)
}

function pageTitle(title: string): string {
  return `${title} · ${appName}`
}

/** Keeps what became known of the order, here and for a reload. */
function know(more: Partial<HeldClaim>): void {
  if (held !== undefined) held = { ...held, ...more }
  hold(more)
}

function orderOf({ orderId, challengeToken }: HeldClaim): PhoneOrder | undefined {
  return challengeToken === undefined ? undefined : { orderId, challengeToken }
}
