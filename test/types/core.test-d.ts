// The assertion is that it compiles, here and in a project that has the package installed (consumer.test.ts).
import type { WalletAdapter } from 'countersign'
import {
  CountersignError,
  createSignInChallenge,
  type ErrorReason,
  type Proof,
  type ProvenIdentity,
  type SignatureAdapter,
  type SignatureKind,
  type SignInChallenge,
  type SignInChallengeOptions,
  signatureAdapter,
  type VerifySignInOptions,
  verifySignIn,
} from 'countersign/core'

declare const adapter: WalletAdapter
declare const proof: Proof
const options: SignInChallengeOptions = {
  appName: 'Example',
  origin: 'https://app.example',
  adapterId: 'ethereum',
  address: '0x0',
  chainId: '1',
  ttlSeconds: 60,
  adapters: ['ethereum', adapter],
  evmRpc: { '1': 'https://rpc.example' },
}

declare const kind: SignatureKind
export const ofKind: SignatureAdapter = signatureAdapter(kind)

export async function signIn(header: string | null): Promise<string | ErrorReason> {
  const challenge: SignInChallenge = createSignInChallenge(options)
  const given: VerifySignInOptions = { challenge, proof, origin: header, adapters: ['ethereum'] }
  try {
    const { adapterId, subject, publicKeyHex, address }: ProvenIdentity = await verifySignIn(given)
    return [adapterId, subject, publicKeyHex, address].join(' ')
  } catch (error) {
    return error instanceof CountersignError ? error.reason : ''
  }
}

// @ts-expect-error: the origin of the request has to be given.
void verifySignIn({ challenge: createSignInChallenge(options), proof })
