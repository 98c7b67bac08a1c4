// A page without a framework: signs in with a wallet on this device or with a phone, stays signed in, signs out.
// In a project of your own, import from 'countersign/client/element' and 'countersign/client'.

import { CountersignClientError, createCountersignClient, type Session } from '../../src/browser/client/index.ts'
import { CountersignSignIn } from '../../src/browser/element/element.ts'

const find = (selector: string) => document.querySelector<HTMLElement>(selector) as HTMLElement
const element = document.querySelector('countersign-sign-in')
if (!(element instanceof CountersignSignIn)) throw new Error('the page has no <countersign-sign-in>')

const client = createCountersignClient({ baseUrl: element.getAttribute('base-url') ?? '' })

function show(session: Session | undefined): void {
  find('#signed-out').hidden = session !== undefined
  find('#signed-in').hidden = session === undefined
  find('#address').textContent = session?.address ?? ''
  find('#problem').textContent = ''
}

function explain(error: unknown): void {
  const code = error instanceof CountersignClientError ? error.code : 'INTERNAL'
  const words: Record<string, string> = {
    NETWORK: 'The service does not answer.',
  }
  find('#problem').textContent = words[code] ?? `That did not work: ${code}`
}

find('#sign-out').addEventListener('click', () => {
  client.signOut().then(() => {
    show(undefined)
    element.restart()
  }, explain)
})
element.client = client
element.addEventListener('countersign:signed-in', ({ detail }) => show(detail.session))

client.getCurrentSession().then(show, explain)
