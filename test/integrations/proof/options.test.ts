import { expect, test } from 'vitest'
import { verifyProofArtifact } from '../../../src/integrations/proof/index.ts'
import { accepted, baseOptions } from '../../support/proofs.ts'

const { artifact, owner } = accepted[0]!
const ethereum = accepted.find(({ name }) => name === 'ethereum')!

// Each of them would otherwise leave a check out that the caller wants.
test.each<[string, object, string]>([
  ['no application', { appName: undefined }, 'appName is undefined; leave it out if it is not to be checked'],
  ['an empty application', { appName: '' }, 'appName must be a text'],
  ['an origin with a path', { origin: 'https://app.example/a' }, 'origin must be one such as https://app.example'],
  ['an empty origin', { origin: '' }, 'origin must be a text'],
  ['a hash that was not found', { payloadHash: undefined }, 'payloadHash is undefined'],
  ['an empty hash', { payloadHash: '' }, 'payloadHash must be a text'],
  ['a payload that was not found', { payload: undefined }, 'payload is undefined'],
  ['a payload that has two meanings', { payload: '{"a":1,"a":2}' }, 'payload has a name twice in an object'],
  ['a line that may be missing or not', { payloadLine: true }, "payloadLine must be 'required' or 'optional'"],
  ['an owner who was not found', { owner: undefined }, 'owner is undefined'],
  ['an owner without a wallet', { owner: { adapterId: 'nimiq' } }, 'owner needs publicKeyHex or address'],
  ['an owner with an empty key', { owner: { adapterId: 'nimiq', publicKeyHex: '' } }, 'owner needs publicKeyHex or'],
  ['an owner of no adapter', { owner: { address: owner.address } }, 'owner.adapterId must be the id of one of the'],
  [
    'an owner with a key in base64',
    { owner: { adapterId: 'nimiq', publicKeyHex: 'YQ==' } },
    'owner.publicKeyHex must be hex',
  ],
  [
    'an owner with a mistyped address',
    { owner: { ...owner, address: 'NQ00' } },
    'owner.address is not an address of nimiq',
  ],
  [
    'a key of ethereum',
    { owner: { ...ethereum.owner, publicKeyHex: '00' } },
    'owner.publicKeyHex: wallets of ethereum',
  ],
  ['a time that is none', { notBefore: Number.NaN }, 'notBefore must be a time in epoch milliseconds'],
  ['a date', { notBefore: new Date() }, 'notBefore must be a time in epoch milliseconds'],
  ['an option that is misspelt', { payloadhash: 'a' }, 'payloadhash is not an option'],
  ['an adapter that does not exist', { adapters: ['bitcoin'] }, 'unknown adapter "bitcoin"'],
  ['an RPC without a scheme', { evmRpc: { '1': 'secret.example/key' } }, 'evmRpc must have http or https addresses'],
])('%s is a mistake of the developer', async (_name, options, message) => {
  const refusal = verifyProofArtifact(artifact, { ...baseOptions, ...options })
  await expect(refusal).rejects.toThrow(TypeError)
  await expect(refusal).rejects.toThrow(message)
})

test('an owner as a session has it, whose key is empty if wallets are known by their address', async () => {
  const session = { adapterId: 'ethereum', publicKeyHex: '', address: ethereum.artifact.address }
  const proof = await verifyProofArtifact(ethereum.artifact, { ...baseOptions, owner: session })
  expect(proof.address).toBe(session.address)
})

test('an origin in another spelling is the same origin', async () => {
  const proof = await verifyProofArtifact(artifact, { ...baseOptions, origin: 'HTTPS://APP.example:443' })
  expect(proof.origin).toBe('https://app.example')
})
