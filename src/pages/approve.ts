import { Countdown, minutesAndSeconds } from '../client/element/countdown.ts'
import {
  CountersignClientError,
  nimiqPay,
  type OrderChallenge,
  type PhoneOrder,
  readWalletAnswer,
  type Wallet,
  type WalletSignature,
} from '../client/index.ts'
import { describeDevice } from './device.ts'
import { byId, fill, metaContent, showOnly } from './dom.ts'
import { countWrongCode, forgetClaim, takeClaim } from './held-claim.ts'
import { phoneCalls } from './phone-calls.ts'
import { Tasks } from './tasks.ts'
import { openToyWallet, type ToyWallet } from './toy-wallet.ts'
import { approved, declined, type Ending, endingOf, linkIncomplete, tooManyWrongCodes } from './words.ts'

/**
 * The approval page, which a claim URL opens on a phone.
 *
 * It claims the order only when the user taps "Review the request". Link previews and mail scanners open URLs, and some of
 * them run scripts: if the page claimed the order on load, they would take it from the user.
 */

const claim = takeClaim(metaContent('countersign-claim-url'))
const client = phoneCalls(metaContent('countersign-base-path'))
const sections = ['start', 'review', 'ended'].map((id) => byId(id))
const codeInput = byId<HTMLInputElement>('code-input')
const maxWrongCodes = 3
const pageTitle = document.title

let order: PhoneOrder | undefined
let challenge: OrderChallenge | undefined
let wallet: Wallet | undefined

const tasks = new Tasks((code) => {
  const ending = endingOf(code)
  if (ending !== undefined) end(ending)
  return ending !== undefined
})

const countdown = new Countdown(
  (seconds) => {
    byId('countdown').textContent = seconds ? `Expires in ${minutesAndSeconds(seconds)}` : ''
  },
  () => void recheck(),
)

if (claim === undefined) end(linkIncomplete)
else showOnly(byId('start'), sections)

byId('review-button').addEventListener('click', () => void tasks.run(review))
byId('approve-button').addEventListener('click', () => void tasks.run(approve))
// Also during an approval: the user can decline until the service has it.
byId('decline-button').addEventListener('click', () => void tasks.runInstead(decline))
codeInput.addEventListener('input', () => showCodeError(''))
codeInput.addEventListener('keydown', ({ key }) => key === 'Enter' && void tasks.run(approve))
// The order may have ended while the page was hidden.
document.addEventListener('visibilitychange', () => void recheck())
// The link of another order, opened in this tab, by a template with the order's identifier in the fragment.
addEventListener('hashchange', () => location.reload())

/** Claims the order and shows its challenge. */
async function review(signal: AbortSignal): Promise<void> {
  if (claim === undefined) return
  order ??= await client.claimOrder(claim, { claimKey: claim.claimKey, signal })
  challenge = await client.getOrderChallenge(order, { signal })
  wallet = remembering(findWallet(challenge))
  showChallenge(challenge)
}

async function approve(signal: AbortSignal): Promise<void> {
  if (order === undefined || challenge === undefined || wallet === undefined) return
  const confirmationCode = challenge.confirmationCodeRequired ? codeInput.value.trim() : undefined
  if (confirmationCode !== undefined && !/^[0-9]{6}$/.test(confirmationCode)) {
    return showCodeError('The code has six digits.')
  }
  try {
    await client.approveOrder(order, { challenge, wallet, confirmationCode, signal })
  } catch (thrown) {
    if (!(thrown instanceof CountersignClientError && thrown.code === 'CONFIRMATION_CODE_WRONG')) throw thrown
    return await wrongCode(order, signal)
  }
  end(approved)
}

async function decline(signal: AbortSignal): Promise<void> {
  if (order === undefined) return
  await client.rejectOrder(order, { signal })
  end(declined)
}

/** The service counts the wrong codes. After the last one, the order is rejected. */
async function wrongCode(order: PhoneOrder, signal: AbortSignal): Promise<void> {
  const left = Math.max(1, maxWrongCodes - countWrongCode())
  try {
    await client.getOrderChallenge(order, { signal })
  } catch (thrown) {
    if (!(thrown instanceof CountersignClientError && thrown.code === 'ORDER_REJECTED')) throw thrown
    return end(tooManyWrongCodes)
  }
  showCodeError(`That is not the code on your computer. ${left === 1 ? 'One try' : `${left} tries`} left.`)
  codeInput.select()
}

/** Asks the service whether the order has ended. */
async function recheck(): Promise<void> {
  if (order === undefined || challenge === undefined || tasks.busy || document.visibilityState === 'hidden') return
  try {
    await client.getOrderChallenge(order)
  } catch (thrown) {
    const ending = thrown instanceof CountersignClientError ? endingOf(thrown.code) : undefined
    // The next tap shows any other failure.
    if (ending !== undefined && !tasks.busy) end(ending)
  }
}

function showChallenge(challenge: OrderChallenge): void {
  const root = byId('review')
  const { kind, requester, displayTitle, displaySummary, confirmationCode } = challenge
  const site = new URL(requester.origin)
  const title = displayTitle ?? (kind === 'login' ? `Sign in to ${site.host}?` : `Sign for ${site.host}?`)
  fill(root, 'kind', kind === 'login' ? 'Sign-in request' : 'Signature request')
  fill(root, 'title', title)
  fill(root, 'summary', displaySummary)
  fill(root, 'code', confirmationCode ?? '')
  byId('compare').hidden = challenge.confirmationCodeRequired
  byId('enter').hidden = !challenge.confirmationCodeRequired
  fill(root, 'origin', site.protocol === 'https:' ? site.host : site.origin)
  fill(root, 'device', [describeDevice(requester.userAgent), requester.ip].filter((part) => part !== '').join(', '))
  fill(root, 'payloadHash', challenge.payloadHash)
  fill(root, 'message', challenge.message)
  showWallet(root, challenge)
  document.title = `${title} · ${pageTitle.split(' · ').at(-1)}`
  countdown.stop()
  // This device's clock may be hours off: never more than the order's whole lifetime.
  countdown.start(Math.min(challenge.expiresAt - Date.now(), challenge.expiresAt - challenge.issuedAt))
  showOnly(root, sections)
}

function showWallet(root: HTMLElement, { adapterId }: OrderChallenge): void {
  const toy = isToy(wallet) ? wallet : undefined
  const name = toy === undefined ? 'Nimiq Pay' : 'This page’s toy wallet'
  fill(root, 'wallet', wallet === undefined ? `This page has no wallet of the requested kind, ${adapterId}` : name)
  fill(root, 'address', toy?.address)
  byId('toy-note').hidden = toy === undefined
  byId('approve-button').hidden = wallet === undefined
}

/** The wallet of the app that opened the page, or else a toy wallet. */
function findWallet({ adapterId }: OrderChallenge): Wallet | undefined {
  const inPage = nimiqPay()
  return inPage !== undefined && adapterId !== undefined && adapterId !== inPage.adapterId
    ? undefined
    : (inPage ?? openToyWallet(adapterId))
}

/** A wallet that keeps its last signature, so that a retry after a lost answer does not ask the user again. */
function remembering<W extends Wallet>(wallet: W | undefined): W | undefined {
  if (wallet === undefined) return undefined
  let signed: { readonly message: string; readonly answer: WalletSignature } | undefined
  return {
    ...wallet,
    async sign(message: string) {
      // Read here, because a wallet may also answer with an error, which must not be kept.
      if (signed?.message !== message) signed = { message, answer: readWalletAnswer(await wallet.sign(message)) }
      return signed.answer
    },
  }
}

function isToy(wallet: Wallet | undefined): wallet is ToyWallet {
  return wallet !== undefined && 'publicKeyHex' in wallet
}

function showCodeError(text: string): void {
  byId('code-error').textContent = text
  codeInput.setAttribute('aria-invalid', String(text !== ''))
  if (text !== '') codeInput.focus()
}

function end({ seal, title, advice }: Ending): void {
  const root = byId('ended')
  root.dataset.seal = seal
  fill(root, 'ending', title)
  fill(root, 'advice', advice)
  countdown.stop()
  forgetClaim()
  document.title = `${title} · ${pageTitle.split(' · ').at(-1)}`
  showOnly(root, sections)
}
