import type { OrderRequester } from '../client/index.ts'
import { describeDevice } from './device.ts'
import { fill } from './dom.ts'
import type { Words } from './words.ts'

/** Who asks, as it is shown before the order is claimed and after. */
export type ShownRequester = Pick<
  OrderRequester,
  'origin' | 'userAgent' | 'sameNetwork' | 'startedWithKey' | 'startedBy'
>

/** Fills the card of who asks, in the part of the page that has its slots. */
export function fillRequester(root: HTMLElement, requester: ShownRequester, words: Words): void {
  const { origin, userAgent, sameNetwork, startedWithKey, startedBy } = requester
  fill(root, 'origin', siteName(origin))
  // What a backend asks for by itself has no device.
  const devices = startedWithKey && userAgent === '' ? [] : [describeDevice(userAgent, words)]
  const names = startedBy === undefined ? [] : [words.say('review.asked-by', { name: startedBy })]
  fill(root, 'device', words.join(...names, ...devices))
  const network = sameNetwork === undefined ? '' : words.say(sameNetwork ? 'network.same' : 'network.other')
  fill(root, 'network', network).dataset.same = String(sameNetwork)
  fill(root, 'unverified', startedWithKey ? '' : words.say('review.unverified'))
}

/** A site as people know it: the host, or the whole origin if it is not https. */
export function siteName(origin: string): string {
  const { protocol, host } = new URL(origin)
  return protocol === 'https:' ? host : origin
}
