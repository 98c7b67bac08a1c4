// The assertion is that it compiles, here and in a project that has the package installed (consumer.test.ts).
import type { Transport } from '@connectrpc/connect'
import { createCountersignClient } from 'countersign/client'
import { createCountersignClient as connectClient } from 'countersign/client/connect'
import {
  CountersignSignIn,
  type CountersignSignInEvents,
  type DeviceSignInResult,
  type DeviceTexts,
  type SignInClient,
  type SignInTexts,
} from 'countersign/client/element'
import { germanTexts, type HubOptions } from 'countersign/client/wallets'

const texts: Partial<SignInTexts> = { starting: 'Gleich …' }
const element = document.createElement('countersign-sign-in')
const made: CountersignSignIn = element
made.client = createCountersignClient()
declare const transport: Transport
made.client = connectClient({ transport })
export const used: SignInClient | undefined = made.client
made.texts = texts
const wallets: Partial<DeviceTexts> = { ...germanTexts, declined: 'Abgelehnt.' }
made.texts = { thisDevice: 'Wallet auf diesem Gerät', wallets }
declare const load: HubOptions['load']
made.hub = { appName: 'Tally', load }
made.extraWallets = [
  { id: 'house', name: 'House wallet', adapterId: 'ed25519', kind: 'page', connect: () => ({ sign: () => '' }) },
]
made.appAddress = 'https://tally.example/sign-in'
// A client of the page's own need not sign in by itself.
const { computerKey, startOrder, watchOrder, finalizeOrder, cancelOrder } = createCountersignClient()
made.client = { computerKey, startOrder, watchOrder, finalizeOrder, cancelOrder }
element.addEventListener('countersign:signed-in', ({ detail }) => {
  const token: string = detail.token
  // @ts-expect-error: a proof comes with another event.
  detail.proofArtifact
  console.log(token, detail.session.address, detail.redirectTo)
  // Without an order, the wallet was on this device.
  if (detail.orderId === undefined) {
    const here: DeviceSignInResult = detail
    console.log(here.session)
  } else console.log(detail.orderId.length, detail.status)
})
element.addEventListener('countersign:error', ({ detail }) => console.log(detail.error.code))
export type Status = CountersignSignInEvents['countersign:status']['status']
export const expired: Status = 'expired'
// @ts-expect-error: a status that does not exist.
export const unknown: Status = 'paid'
await made.cancel()
export const attributes: readonly string[] = CountersignSignIn.observedAttributes
