import { sha256 } from '@noble/hashes/sha2.js'
import { payloadLine } from '../../core/challenge-text.ts'
import { type Ed25519Adapter, portableVerifier } from '../../core/wallet/ed25519.ts'
import { ed25519, nimiq } from '../../core/wallet/nimiq.ts'
import { hexToBytes } from '../../shared/hex.ts'
import { base64url } from '../client/computer-key.ts'
import type { CountersignClient, ProofArtifact, StartOrderOptions } from '../client/index.ts'
import { CountersignSignIn } from '../element/element.ts'
import { ClaimNotes } from './claim-notes.ts'
import { isSmallTouchScreen } from './device.ts'
import { byId, fill } from './dom.ts'
import { elementTexts, type Words } from './words.ts'

const utf8 = new TextEncoder()

/** Command that starts the demo so that phones can reach it. */
export const lanCommand = 'npm start -- --lan'

/** Prepares the form that starts signature orders and shows their proof artifacts. */
export function prepareSignOrders(client: CountersignClient, words: Words): void {
  byId<HTMLInputElement>('sign-order-title').value = words.say('demo.sign.order.title.sample')
  byId<HTMLTextAreaElement>('sign-order-summary').value = words.say('demo.sign.order.summary.sample')
  const place = byId('sign-order')
  const problem = byId('payload-error')
  byId<HTMLFormElement>('sign-form').addEventListener('submit', (event) => {
    event.preventDefault()
    byId('proof').hidden = true
    const displayTitle = lineOf('sign-order-title')
    const displaySummary = lineOf('sign-order-summary')
    const payload = byId<HTMLTextAreaElement>('sign-order-payload').value.trim()
    problem.textContent = isJson(payload) ? '' : words.say('demo.sign.not-json')
    if (problem.textContent !== '') return
    const order = { kind: 'sign', displayTitle, displaySummary, payload } as const
    const element = showOrder(place, { client, words, order })
    element.addEventListener('countersign:error', ({ detail: { error } }) => {
      // The service says what it does not take in a text.
      if (error.code === 'INVALID_REQUEST') problem.textContent = error.message
    })
    element.addEventListener('countersign:signed', ({ detail: { proofArtifact } }) => {
      place.replaceChildren()
      showProof(proofArtifact, words)
    })
  })
}

/** An order to show. */
interface OrderToShow {
  readonly client: CountersignClient
  readonly words: Words
  readonly order: StartOrderOptions
}

/** Shows an order and notes on its code in a place of the page. An order that was there is cancelled. */
function showOrder(place: HTMLElement, { client, words, order }: OrderToShow): CountersignSignIn {
  const element = new CountersignSignIn()
  // The card says by itself how phones reach it.
  const notes = new ClaimNotes(words)
  const isPhone = isSmallTouchScreen()
  element.client = client
  element.startOrder = async ({ signal }) => {
    const started = await client.startOrder({ ...order, signal })
    if (!signal.aborted) notes.show(started.claimUrl)
    return started
  }
  const here = words.say('demo.phone.created.here')
  element.texts = { ...elementTexts(words), ...(isPhone ? { created: here, localOnly: here } : {}) }
  element.classList.toggle('without-code', isPhone)
  element.classList.toggle('without-clipboard', !('clipboard' in navigator))
  element.addEventListener('countersign:status', ({ detail: { status } }) => status !== 'created' && notes.hide())
  element.addEventListener('countersign:error', () => notes.hide())
  // The link is what a phone's user needs first.
  place.replaceChildren(...(isPhone ? [notes.root, element] : [element, notes.root]))
  return element
}

/** The value of a field as one line, because an order's texts must not have line breaks. */
function lineOf(id: string): string {
  return byId<HTMLInputElement>(id).value.replace(/\s+/g, ' ').trim()
}

/** Whether a text is JSON, or nothing. */
function isJson(text: string): boolean {
  try {
    JSON.parse(text || 'null')
    return true
  } catch {
    return false
  }
}

function showProof(artifact: ProofArtifact, words: Words): void {
  const root = byId('proof')
  fill(root, 'verdict', words.say(verdictOn(artifact)))
  const shown = ['address', 'publicKeyHex', 'signatureHex', 'payload', 'payloadHash', 'message'] as const
  for (const name of shown) fill(root, name, artifact[name])
  root.hidden = false
  byId('proof-title').focus()
}

function verdictOn(artifact: ProofArtifact): 'demo.proof.valid' | 'demo.proof.invalid' | 'demo.proof.other' {
  const adapter = [nimiq, ed25519].find(({ id }) => id === artifact.adapterId)
  if (adapter === undefined) return 'demo.proof.other'
  return isValid(artifact, adapter) ? 'demo.proof.valid' : 'demo.proof.invalid'
}

/**
 * Verifies an artifact as anyone can: the signature over the text, the hash of the content in it, and the address of
 * the key.
 */
function isValid(artifact: ProofArtifact, adapter: Ed25519Adapter): boolean {
  const { message, payload, address } = artifact
  const publicKey = hexToBytes(artifact.publicKeyHex)
  const signature = hexToBytes(artifact.signatureHex)
  if (publicKey === undefined || signature === undefined) return false
  return (
    portableVerifier.verify(signature, adapter.signedBytes(message), publicKey) &&
    (payload === undefined || isAbout(message, payload)) &&
    adapter.readAddress(address) === adapter.deriveAddress(publicKey)
  )
}

/** Whether a text is about a content in its canonical form: it has the hash, and the content itself if it fits. */
function isAbout(message: string, payload: string): boolean {
  const lines = message.split('\n')
  const line = payloadLine(payload)
  const hash = `sha256:${base64url(sha256(utf8.encode(payload)))}`
  return lines.includes(`Payload Hash: ${hash}`) && (line === undefined || lines.includes(`Payload: ${line}`))
}
