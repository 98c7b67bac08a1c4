import type { CountersignClient, StartedOrder } from '../client/index.ts'
import { CountersignSignIn, type SignInClient } from '../element/element.ts'
import { element, noteForOperator } from './dom.ts'
import { whoView } from './who.ts'
import { elementTexts, textsUnder, type Words } from './words.ts'

/** Options of {@link linkPanel}. */
export interface LinkPanelOptions {
  readonly client: CountersignClient
  readonly words: Words
  /** The order that is shown first. Once it has expired, another one is started. */
  readonly order: StartedOrder
  /** Called once the wallet of the other device is the user's, and if the user cancels. */
  readonly onEnd: (isAdded: boolean) => void
}

/**
 * How a wallet of another device is added: a code to scan there and a link to send there, then the wallet that has
 * answered and a field for the code that its device shows. Taken out of the page, it cancels its order.
 */
export function linkPanel({ client, words, order: first, onEnd }: LinkPanelOptions): HTMLElement[] {
  const panel = new CountersignSignIn()
  const problem = element('p', 'error')
  const who = element('div', '')
  let order: StartedOrder | undefined
  const share = shareButton(words, () => order?.claimUrl)
  problem.setAttribute('role', 'alert')
  panel.texts = { ...elementTexts(words), ...textsUnder('account.link.', words) }
  panel.startOrder = async ({ signal }) => {
    problem.textContent = ''
    who.replaceChildren()
    order = order === undefined ? first : await client.startOrder({ kind: 'link', signal })
    return order
  }
  panel.client = namingWallet(client, (address) => who.replaceChildren(whoView({ address }, words)))
  panel.addEventListener('countersign:status', ({ detail: { status } }) => {
    share.hidden = status !== 'created' || !('share' in navigator)
    if (status === 'finalized' || status === 'cancelled') onEnd(status === 'finalized')
  })
  panel.addEventListener('countersign:error', ({ detail: { error } }) => {
    share.hidden = true
    problem.textContent = words.notice(error.code)
    noteForOperator(error)
  })
  share.hidden = true
  return [who, panel, share, problem]
}

/** A client that reports the wallet of an approval before the page gets the event. */
function namingWallet(client: CountersignClient, onWallet: (address: string) => void): SignInClient {
  return {
    ...client,
    async *watchOrder(order, options) {
      for await (const event of client.watchOrder(order, options)) {
        if (event.address !== undefined) onWallet(event.address)
        yield event
      }
    },
  }
}

/** Sends the link of the code in the way that the user chooses from those of the device. */
function shareButton(words: Words, claimUrl: () => string | undefined): HTMLButtonElement {
  const button = element('button', 'button primary wide', words.say('account.link.share'))
  button.type = 'button'
  button.addEventListener('click', () => {
    const url = claimUrl()
    // Closing the list of ways is a rejection, too.
    if (url !== undefined) void navigator.share({ url }).catch(() => {})
  })
  return button
}
