import type { Mutation } from './mutation.ts'

const asked = { row: 30, tests: ['test/http/forward-auth.test.ts'] }
const proxied = { row: 30, file: 'docs/forward-auth.md', tests: ['test/e2e/forward-auth.test.ts'] }
const verifier = { row: 31, tests: ['test/backend/session-verifier.test.ts'] }
const artifact = { row: 33, tests: ['test/proof/vectors.test.ts'] }
const wayBack = { row: 32, tests: ['test/pages/return-target.test.ts'] }

/** Defences of what stands before other applications, and of proofs outside the service. Rows 30 to 33. */
export const doors: readonly Mutation[] = [
  {
    ...asked,
    takesOut: 'the rule for cookies of proxied requests',
    file: 'src/host/standalone.ts',
    find: 'if (credential.fromCookie) this.#requireProxiedOrigin(request, reads)',
    replace: '',
  },
  {
    ...asked,
    takesOut: 'the refusal of a cookie without an Origin, but for GET and HEAD',
    file: 'src/host/standalone.ts',
    find: 'else if (!reads) throw proxiedOriginRequired()',
    replace: '',
  },
  {
    ...asked,
    takesOut: 'the agreement of all headers that tell the method',
    file: 'src/http/forward-auth.ts',
    find: 'told.every(',
    replace: 'told.some(',
  },
  {
    ...asked,
    takesOut: 'the rule for the path to return to',
    file: 'src/http/forward-auth.ts',
    find: ' && isReturnPath(told)',
    replace: '',
  },
  {
    ...asked,
    takesOut: 'the need for a trusted proxy',
    file: 'src/http/forward-auth.ts',
    find: 'if (trustProxy === 0) throw trustsNoProxy()',
    replace: '',
  },
  {
    ...proxied,
    takesOut: "Caddy's removal of the client's own headers",
    find: '      request_header -X-Countersign*\n',
    replace: '',
  },
  {
    ...proxied,
    takesOut: "nginx's replacement of the client's own header",
    find: '  proxy_set_header X-Countersign-User $countersign_user;\n',
    replace: '',
  },
  {
    ...verifier,
    takesOut: 'the need for a trusted Origin',
    file: 'src/backend/credential.ts',
    find: 'return origin !== undefined && trusts(origin, ownOrigin)',
    replace: 'return origin !== undefined',
  },
  {
    ...verifier,
    takesOut: 'the methods that need no Origin',
    file: 'src/backend/credential.ts',
    find: "return method === 'GET' || method === 'HEAD'",
    replace: 'return true',
  },
  {
    ...verifier,
    takesOut: 'the refusal of two cookies of one name',
    file: 'src/backend/credential.ts',
    find: 'values.length === 1 ? values[0]',
    replace: 'values.length > 0 ? values[0]',
  },
  {
    ...verifier,
    takesOut: 'the start of the call as the beginning of the time in the cache',
    file: 'src/backend/session-checks.ts',
    find: 'Math.min(startedAt + cacheMs,',
    replace: 'Math.min(performance.now() + cacheMs,',
  },
  {
    ...verifier,
    takesOut: 'the end of a session in the cache',
    file: 'src/backend/session-checks.ts',
    find: ', performance.now() + session.expiresAt - now)',
    replace: ')',
  },
  {
    ...wayBack,
    takesOut: 'the rule for the path to return to',
    file: 'src/pages/return-target.ts',
    find: ' || !isReturnPath(returnTo)',
    replace: '',
  },
  {
    ...wayBack,
    takesOut: 'the refusal of the page itself as the way back',
    file: 'src/pages/return-target.ts',
    find: ' && target.pathname !== page.pathname',
    replace: '',
  },
  {
    row: 32,
    takesOut: 'the rule that the session is in the cookie only',
    file: 'src/pages/cookie-only.ts',
    find: 'getItem: () => null',
    replace: 'getItem: (key) => localStorage.getItem(key)',
    tests: ['test/browser/sign-in-page.test.ts'],
  },
  {
    ...artifact,
    takesOut: 'the refusal of a line that is there twice',
    file: 'src/proof/signed-text.ts',
    find: 'if (lines.has(name)) throw',
    replace: 'if (false) throw',
  },
  {
    ...artifact,
    takesOut: "the owner's adapter",
    file: 'src/proof/verify.ts',
    find: 'owner.adapterId === adapterId &&',
    replace: '',
  },
  {
    ...artifact,
    takesOut: 'the comparison with the account in the text',
    file: 'src/proof/verify.ts',
    find: 'requireAccount(text, identity, adapter)',
    replace: '',
  },
]
