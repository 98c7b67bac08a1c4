// The assertion is that it compiles, here and in a project that has the package installed (consumer.test.ts).
import { createCountersignClient } from 'countersign/client'
import { createDirectClient } from 'countersign/client/direct'
import {
  CountersignSignIn,
  type CountersignSignInEvents,
  type SignInClient,
  type SignInTexts,
} from 'countersign/client/element'

const texts: Partial<SignInTexts> = { starting: 'Gleich …' }
const element = document.createElement('countersign-sign-in')
const made: CountersignSignIn = element
made.client = createCountersignClient()
made.client = createDirectClient()
export const used: SignInClient | undefined = made.client
made.texts = texts
element.addEventListener('countersign:signed-in', ({ detail }) => {
  const token: string = detail.token
  // @ts-expect-error: a proof comes with another event.
  detail.proofArtifact
  console.log(token, detail.session.address)
})
element.addEventListener('countersign:error', ({ detail }) => console.log(detail.error.code))
export type Status = CountersignSignInEvents['countersign:status']['status']
export const expired: Status = 'expired'
// @ts-expect-error: a status that does not exist.
export const unknown: Status = 'paid'
await made.cancel()
export const attributes: readonly string[] = CountersignSignIn.observedAttributes
