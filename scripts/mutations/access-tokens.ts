import type { Mutation } from './mutation.ts'

const verifier = { row: 28, file: 'src/backend/access-token.ts', tests: ['test/backend/access-token.test.ts'] }
const issuer = {
  row: 29,
  file: 'src/access-token/access-tokens.ts',
  tests: ['test/access-token/access-tokens.test.ts'],
}
const keys = { row: 29, file: 'src/access-token/signing-keys.ts', tests: ['test/access-token/signing-keys.test.ts'] }

/** Defences of access tokens: rows 28, 29. */
export const accessTokens: readonly Mutation[] = [
  { ...verifier, takesOut: 'the check of the type of a token', find: "      typ: 'at+jwt',\n", replace: '' },
  {
    ...verifier,
    takesOut: 'the check of the algorithm of a token',
    find: "      algorithms: ['EdDSA'],\n",
    replace: '',
  },
  {
    ...verifier,
    takesOut: 'the check of the issuer of a token',
    find: '      issuer,\n      audience,\n',
    replace: '      audience,\n',
  },
  {
    ...verifier,
    takesOut: 'the check of the audience of a token',
    find: '      audience,\n      clockTolerance',
    replace: '      clockTolerance',
  },
  { ...verifier, takesOut: 'the refusal of tokens without an expiry', find: "['exp', 'iat']", replace: "['iat']" },
  {
    ...verifier,
    takesOut: 'the need to name a key',
    find: "if (typeof kid !== 'string') throw",
    replace: 'if (false) throw',
  },
  {
    ...verifier,
    takesOut: 'the difference between an outage of the keys and a wrong token',
    find: 'if (thrown instanceof errors.JWKSNoMatchingKey) throw thrown',
    replace: 'if (thrown instanceof Error) throw new errors.JWKSNoMatchingKey()',
  },
  {
    ...verifier,
    takesOut: 'the refusal to verify without issuer and audience',
    find: '  requireOptions(issuer, audience, clockToleranceSeconds)\n',
    replace: '',
  },
  {
    ...verifier,
    takesOut: 'the end of the life of fetched keys',
    find: 'const cacheMaxAgeMs = 300_000',
    replace: 'const cacheMaxAgeMs = 30_000_000',
  },
  {
    ...verifier,
    takesOut: 'the bound on the length of a token',
    find: ' || token.length > maxTokenLength)',
    replace: ')',
  },
  {
    ...verifier,
    takesOut: 'the bound on key sets that are kept',
    find: 'byAddress.size >= maxKeySets',
    replace: 'false',
  },
  {
    ...issuer,
    takesOut: 'the refusal of audiences that are not configured',
    find: 'if (!audiences.includes(audience)) {',
    replace: 'if (false) {',
    tests: ['test/e2e/access-tokens.test.ts'],
  },
  {
    ...issuer,
    takesOut: 'the end of a token with its session',
    find: 'Math.min(now + ttlSeconds * 1000, session.expiresAt)',
    replace: 'now + ttlSeconds * 1000',
  },
  {
    ...issuer,
    takesOut: 'the clock of the store',
    find: 'const now = store.now()',
    replace: 'const now = Math.max(store.now(), Date.now())',
  },
  {
    ...keys,
    takesOut: 'the purpose of the keys',
    find: "keyring.derive('access token key', [])",
    replace: "keyring.derive('finalize seed', [])",
  },
  {
    ...keys,
    takesOut: 'the order of the secrets',
    find: 'const privateKey = privateKeyOf(first)',
    replace: 'const privateKey = privateKeyOf(others.at(-1) ?? first)',
  },
  {
    ...keys,
    takesOut: 'the removal of keys that are there twice',
    find: '[...new Map(all.map((key) => [key.kid, key])).values()]',
    replace: 'all',
  },
  {
    row: 29,
    file: 'src/rpc/session-service.ts',
    takesOut: 'the session that an access token needs to be live',
    find: 'await accessTokens.issue(await current(call), audience)',
    replace:
      "await accessTokens.issue((await current(call).catch(() => undefined)) ?? { id: 's', userId: 'u', adapterId: '', publicKeyHex: '', address: '', createdAt: 0, expiresAt: 9e15, ip: '', userAgent: '' }, audience)",
    tests: ['test/e2e/access-tokens.test.ts'],
  },
]
