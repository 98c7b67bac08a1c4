import type { OrderPreview } from '../client/index.ts'
import { byId, fill } from './dom.ts'
import { fillRequester } from './requester-card.ts'
import type { Words } from './words.ts'

const root = byId('start')
const requester = byId('start-asks')
const compare = byId('start-compare')

/**
 * The first screen: who asks, from which device, and the digits to compare, beside the one button that claims the
 * order. As long as the service has not said so, their places are kept.
 */
export class StartScreen {
  readonly #words: Words

  constructor(words: Words) {
    this.#words = words
  }

  /** Keeps places for what the service is going to say. */
  wait(): void {
    root.ariaBusy = 'true'
    compare.hidden = false
  }

  /** Fills in what the service said, if it did. Returns the headline. */
  fill(preview: OrderPreview | undefined): string {
    const words = this.#words
    const title = preview === undefined ? words.say('start.title') : words.say(`review.${preview.kind}.title`)
    root.ariaBusy = null
    fill(root, 'startTitle', title)
    requester.hidden = preview === undefined
    compare.hidden = preview?.confirmationCode === undefined
    fill(root, 'code', preview?.confirmationCode)
    if (preview !== undefined) fillRequester(root, preview, words)
    return title
  }
}
