import { createHash } from 'node:crypto'

/** What a proof is for. */
export interface ProofSubject {
  readonly orderId: string
  readonly desktopToken: string
}

/** A computer with a key, as a browser makes it: the private key cannot be exported. */
export interface TestComputer {
  /** The public key, as StartOrder takes it. */
  readonly key: string
  /** The proof of possession for an order, as FinalizeOrder takes it. */
  prove(subject: ProofSubject): Promise<string>
  /** The signature of any text. */
  sign(text: string): Promise<string>
}

export async function makeComputer(): Promise<TestComputer> {
  const pair = await crypto.subtle.generateKey({ name: 'ECDSA', namedCurve: 'P-256' }, false, ['sign'])
  const key = Buffer.from(await crypto.subtle.exportKey('spki', pair.publicKey)).toString('base64url')
  const sign = async (text: string): Promise<string> => {
    const algorithm = { name: 'ECDSA', hash: 'SHA-256' }
    const signature = await crypto.subtle.sign(algorithm, pair.privateKey, new TextEncoder().encode(text))
    return Buffer.from(signature).toString('base64url')
  }
  return { key, sign, prove: (subject) => sign(proofText(subject)) }
}

/** The text that a computer signs, put together apart from the service's code. */
export function proofText({ orderId, desktopToken }: ProofSubject): string {
  const tokenHash = createHash('sha256').update(desktopToken).digest('base64url')
  return ['countersign.v1 finalize', orderId, tokenHash].join('\n')
}
