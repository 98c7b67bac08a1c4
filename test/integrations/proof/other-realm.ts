// Signs and verifies where the global Uint8Array is not that of Node's own bytes, as in tests with jsdom. Prints each
// verdict as a line: see other-realm.test.ts.
import { runInNewContext } from 'node:vm'

globalThis.Uint8Array = runInNewContext('Uint8Array')

const { makeTestWallet } = await import('../../../src/integrations/testing/index.ts')
const { verifyProofArtifact } = await import('../../../src/integrations/proof/index.ts')
const { ed25519Adapter } = await import('../../../src/index.ts')
const { accepted, refused } = await import('../../support/proofs.ts')

for (const adapterId of ['nimiq', 'ed25519'] as const) {
  for (const secretKey of [undefined, new Uint8Array(32).fill(1), Buffer.alloc(32, 1)]) {
    console.log(makeTestWallet({ adapterId, ...(secretKey && { secretKey }) }).sign('text').length)
  }
}
// An adapter of an application's own, with bytes of Node.
const framing = {
  id: 'own',
  displayName: 'Own',
  signedBytes: (message: string) => Buffer.from(message),
  deriveAddress: (key: Uint8Array) => Buffer.from(key).toString('hex'),
  readAddress: (text: string) => text,
}
console.log(ed25519Adapter(framing).id)
for (const { artifact, options } of [...accepted, ...refused]) {
  const verdict = await verifyProofArtifact(artifact, options).then(
    () => 'accepted',
    ({ reason, message }) => reason ?? message,
  )
  console.log(verdict)
}
