import { sha256 } from '@noble/hashes/sha2.js'
import type { CountersignClient, ProofArtifact } from '../client/index.ts'
import { bytesToHex, hexToBytes } from '../hex.ts'
import { ed25519 } from '../wallet/ed25519.ts'
import { nimiq } from '../wallet/nimiq.ts'
import { portableVerifier } from '../wallet/strict-ed25519.ts'
import { onEvent, showOrder } from './demo-phone.ts'
import { byId, fill } from './dom.ts'

const utf8 = new TextEncoder()

/** Prepares the form that starts signature orders and shows their proof artifacts. */
export function prepareSignOrders(client: CountersignClient): void {
  const place = byId('sign-order')
  byId<HTMLFormElement>('sign-form').addEventListener('submit', (event) => {
    event.preventDefault()
    byId('proof').hidden = true
    const displayTitle = lineOf('sign-order-title')
    const displaySummary = lineOf('sign-order-summary')
    // An application would hash its document; the demo has only these two lines.
    const payloadHash = `sha256:${bytesToHex(sha256(utf8.encode(`${displayTitle}\n${displaySummary}`)))}`
    const element = showOrder(place, client, { kind: 'sign', displayTitle, displaySummary, payloadHash })
    onEvent(element, 'countersign:signed', ({ proofArtifact }) => {
      place.replaceChildren()
      showProof(proofArtifact)
    })
  })
}

/** The value of a field as one line, because an order's texts must not have line breaks. */
function lineOf(id: string): string {
  return byId<HTMLInputElement>(id).value.replace(/\s+/g, ' ').trim()
}

function showProof(artifact: ProofArtifact): void {
  const root = byId('proof')
  fill(
    root,
    'verdict',
    isValid(artifact) ? 'Verified in this page: the signature is valid.' : 'The signature is not valid.',
  )
  fill(root, 'address', artifact.address)
  fill(root, 'publicKey', artifact.publicKeyHex)
  fill(root, 'signature', artifact.signatureHex)
  fill(root, 'payloadHash', artifact.payloadHash)
  fill(root, 'message', artifact.message)
  root.hidden = false
  byId('proof-title').focus()
}

/** Verifies an artifact as anyone can: the signature over the text, and the address of the key. */
function isValid({ adapterId, publicKeyHex, signatureHex, message, address }: ProofArtifact): boolean {
  const adapter = [nimiq, ed25519].find(({ id }) => id === adapterId)
  const publicKey = hexToBytes(publicKeyHex)
  const signature = hexToBytes(signatureHex)
  if (adapter === undefined || publicKey === undefined || signature === undefined) return false
  return (
    portableVerifier.verify(signature, adapter.signedBytes(message), publicKey) &&
    adapter.sameAddress(adapter.deriveAddress(publicKey), address)
  )
}
