// biome-ignore-all lint/suspicious/noTemplateCurlyInString: the texts are those of source files, template strings included.
/** A defence that is taken out, and the tests that have to notice. */
export interface Mutation {
  /** Number of the row of SECURITY.md's table that names the defence. */
  readonly row: number
  /** What is taken out, in words. */
  readonly takesOut: string
  readonly file: string
  /** Text of the file that is replaced. It occurs there exactly once. */
  readonly find: string
  readonly replace: string
  /** Test files, at least one of which has to fail. The row names each of them. */
  readonly tests: readonly string[]
}

const strictTests = ['test/wallet/strict-ed25519.test.ts']
const nonceTests = ['test/sign-in/nonce.test.ts']
const originTests = ['test/origin.test.ts']
const sessionTests = ['test/host/sessions.test.ts']
const orderTests = ['test/order/orders.test.ts']
const linkTests = ['test/better-auth/linking.test.ts', 'test/sign-in/nonce.test.ts']
const machineTests = ['test/order/order.test.ts']

/** Every defence that SECURITY.md names. A new one is one more entry here, and its tests go into the table there. */
export const mutations: readonly Mutation[] = [
  // 1: forged signatures
  {
    row: 1,
    takesOut: 'the refusal of small-order keys and R',
    file: 'src/wallet/strict-ed25519.ts',
    find: ' && !smallOrderYs.some((small) => small.every((byte, index) => byte === y[index]))',
    replace: '',
    tests: strictTests,
  },
  {
    row: 1,
    takesOut: 'the refusal of non-canonical keys and R',
    file: 'src/wallet/strict-ed25519.ts',
    find: 'return isBelow(y, fieldPrime) && ',
    replace: 'return ',
    tests: strictTests,
  },
  {
    row: 1,
    takesOut: 'the refusal of S beyond the group order',
    file: 'src/wallet/strict-ed25519.ts',
    find: '    isBelow(signature.subarray(32), groupOrder) &&\n',
    replace: '',
    tests: strictTests,
  },
  {
    row: 1,
    takesOut: 'the refusal of a degenerate key',
    file: 'src/wallet/strict-ed25519.ts',
    find: '    isStrictPoint(publicKey) &&\n',
    replace: '',
    tests: strictTests,
  },
  {
    row: 1,
    takesOut: 'the refusal of a degenerate R',
    file: 'src/wallet/strict-ed25519.ts',
    find: ' &&\n    isStrictPoint(signature.subarray(0, 32))',
    replace: '',
    tests: strictTests,
  },
  {
    row: 1,
    takesOut: 'the strict check before the native verifier',
    file: 'src/wallet/native.ts',
    find: '    if (!isStrictEncoding(signature, publicKey)) return false\n',
    replace: '',
    tests: ['test/wallet/native.test.ts', 'test/wallet/agreement.test.ts'],
  },
  {
    row: 1,
    takesOut: 'the strict check before the portable verifier',
    file: 'src/wallet/strict-ed25519.ts',
    find: 'isStrictEncoding(signature, publicKey) && nacl',
    replace: 'nacl',
    tests: strictTests,
  },
  {
    row: 1,
    takesOut: 'the check of the signature itself',
    file: 'src/wallet/ed25519-adapter.ts',
    find: '    if (!verifier.verify(signature, framing.signedBytes(message), publicKey)) return undefined\n',
    replace: '',
    tests: ['test/wallet/adapters.test.ts'],
  },
  {
    row: 1,
    takesOut: 'the check that the address is the key’s',
    file: 'src/wallet/ed25519-adapter.ts',
    find: 'proof.address !== undefined && !framing.sameAddress(proof.address, address)',
    replace: 'false',
    tests: ['test/wallet/adapters.test.ts'],
  },
  {
    row: 1,
    takesOut: 'the rule that an adapter speaks for its own wallets only',
    file: 'src/wallet/prover.ts',
    find: 'if (adapterId !== adapter.id)',
    replace: 'if (false)',
    tests: ['test/wallet/adapters.test.ts'],
  },
  {
    row: 1,
    takesOut: 'the adapter in the identity of a user',
    file: 'src/host/standalone.ts',
    find: '`${identity.adapterId}:${identity.subject}`',
    replace: 'identity.subject',
    tests: ['test/e2e/sign-in.test.ts', 'test/host/contract.test.ts'],
  },

  // 2: replay
  {
    row: 2,
    takesOut: 'the check that the nonce’s record is the one that was looked at',
    file: 'src/sign-in/nonce.ts',
    find: '(await this.#store.take(key)) !== found.value',
    replace: '(await this.#store.take(key)) === undefined',
    tests: nonceTests,
  },
  {
    row: 2,
    takesOut: 'the expiry of a nonce',
    file: 'src/sign-in/nonce.ts',
    find: '>= record.expiresAt) {',
    replace: '>= record.expiresAt + 30_000) {',
    tests: nonceTests,
  },
  {
    row: 2,
    takesOut: 'the mark of a used nonce, if the application’s nonce store cannot take',
    file: 'src/sign-in/nonce.ts',
    find: "if (!(await store.create(`used-${key}`, '', { ttlMs }))) return undefined",
    replace: '',
    tests: nonceTests,
  },
  {
    row: 2,
    takesOut: 'the check that the stored record is that of the nonce',
    file: 'src/sign-in/nonce.ts',
    find: 'record.nonceId !== nonceId || ',
    replace: '',
    tests: nonceTests,
  },
  {
    row: 2,
    takesOut: 'the atomic take in SQLite',
    file: 'src/store/sqlite.ts',
    find: 'if (this.#statements.takeValue.run(key, value).changes === 1) return { value, taken: true }',
    replace: 'return { value, taken: true }',
    tests: ['test/store/sqlite.test.ts', 'test/sign-in/nonce.test.ts'],
  },
  {
    row: 2,
    takesOut: 'the atomic take in Redis',
    file: 'src/store/redis/scripts.ts',
    find: "redis.call('DEL', KEYS[1])\nreturn {1, entry}",
    replace: 'return {1, entry}',
    tests: ['test/store/redis/redis.test.ts'],
  },

  // 3: a foreign page and nonces
  {
    row: 3,
    takesOut: 'the check that the origin that asks for a nonce is trusted',
    file: 'src/sign-in/sign-in.ts',
    find: 'const origin = this.#origins.requireTrusted(request)',
    replace: "const origin = request.origin ?? ''",
    tests: ['test/e2e/sign-in.test.ts', 'test/contract/standalone.test.ts'],
  },
  {
    row: 3,
    takesOut: 'the check that a proof comes from the nonce’s own origin',
    file: 'src/origin-policy.ts',
    find: 'if (request.origin !== undefined && expected.includes(request.origin)) return',
    replace: 'if (request.origin !== undefined) return',
    tests: originTests,
  },
  {
    row: 3,
    takesOut: 'the check that the origin that starts an order is trusted',
    file: 'src/order/orders.ts',
    find: 'const origin = origins.requireTrusted(request)',
    replace: "const origin = request.origin ?? ''",
    tests: ['test/order/start.test.ts', 'test/order/orders.test.ts'],
  },
  {
    row: 3,
    takesOut: 'the origin in the text that the wallet signs',
    file: 'src/challenge.ts',
    find: '    `Origin: ${challenge.origin}`,\n',
    replace: '',
    tests: ['test/challenge.test.ts'],
  },
  {
    row: 3,
    takesOut: 'the name of the application in the text that the wallet signs',
    file: 'src/challenge.ts',
    find: '`${appName} requests ',
    replace: '`Somebody requests ',
    tests: ['test/challenge.test.ts'],
  },

  // 4: a foreign page and cookies
  {
    row: 4,
    takesOut: 'the check that a cookie comes from a trusted origin',
    file: 'src/host/standalone.ts',
    find: 'if (credential.fromCookie) this.#origins.requireTrusted(request)\n    const used',
    replace: 'const used',
    tests: ['test/e2e/sessions.test.ts', 'test/host/contract.test.ts'],
  },
  {
    row: 4,
    takesOut: 'the same check for a sign-out',
    file: 'src/host/standalone.ts',
    find: 'if (credential.fromCookie) this.#origins.requireTrusted(request)\n    const session',
    replace: 'const session',
    tests: ['test/e2e/sessions.test.ts', 'test/host/contract.test.ts'],
  },
  {
    row: 4,
    takesOut: 'HttpOnly',
    file: 'src/host/standalone.ts',
    find: 'httpOnly: true',
    replace: 'httpOnly: false',
    tests: ['test/e2e/sessions.test.ts'],
  },
  {
    row: 4,
    takesOut: 'SameSite=Lax',
    file: 'src/host/standalone.ts',
    find: "sameSite: 'lax'",
    replace: "sameSite: 'none'",
    tests: ['test/e2e/sessions.test.ts'],
  },
  {
    row: 4,
    takesOut: 'Secure',
    file: 'src/host/standalone.ts',
    find: 'secure: this.#settings.secureCookie()',
    replace: 'secure: false',
    tests: ['test/e2e/sessions.test.ts'],
  },
  {
    row: 4,
    takesOut: 'the prefix __Host-',
    file: 'src/host/standalone.ts',
    find: 'this.#settings.secureCookie() ? `__Host-${cookieName}` : cookieName',
    replace: 'cookieName',
    tests: ['test/e2e/sessions.test.ts'],
  },
  {
    row: 4,
    takesOut: 'the list of origins that may read answers (CORS)',
    file: 'src/http/cors.ts',
    find: 'if (origin !== undefined && isTrusted(origin)) {',
    replace: 'if (origin !== undefined) {',
    tests: ['test/http/cors.test.ts'],
  },

  // 5: forged lines
  {
    row: 5,
    takesOut: 'the refusal of line breaks and control characters in titles',
    file: 'src/order/start.ts',
    find: 'if (text !== undefined) requirePlainLine(field, text)',
    replace: '',
    tests: ['test/order/start.test.ts'],
  },
  {
    row: 5,
    takesOut: 'the refusal of text-direction characters',
    file: 'src/challenge.ts',
    find: '\\u061C\\u200E\\u200F\\u202A-\\u202E\\u2066-\\u2069',
    replace: '',
    tests: ['test/challenge.test.ts'],
  },
  {
    row: 5,
    takesOut: 'the refusal of a return_to that leads elsewhere',
    file: 'src/order/start.ts',
    find: '  requirePathOnly(returnTo)\n',
    replace: '',
    tests: ['test/order/start.test.ts'],
  },

  // 6: a photograph of the QR code
  {
    row: 6,
    takesOut: 'the refusal of a second claim',
    file: 'src/order/order.ts',
    find: "    claimed: 'ORDER_ALREADY_CLAIMED',",
    replace: "    claimed: 'moves',",
    tests: machineTests,
  },
  {
    row: 6,
    takesOut: 'the check of the code that the user enters',
    file: 'src/order/order.ts',
    find: '      return (\n        checkCode(order, command.confirmationCode, now) ?? {',
    replace: '      return (\n        undefined ?? {',
    tests: machineTests,
  },
  {
    row: 6,
    takesOut: 'the end of the order by the third wrong code',
    file: 'src/order/order.ts',
    find: 'const maxWrongCodes = 3',
    replace: 'const maxWrongCodes = 30',
    tests: machineTests,
  },
  {
    row: 6,
    takesOut: 'the secrecy of a code that the user has to enter',
    file: 'src/order/orders.ts',
    find: '...(order.codeRequired ? {} : { confirmationCode })',
    replace: '...{ confirmationCode }',
    tests: ['test/order/approve.test.ts', 'test/order/orders.test.ts'],
  },
  {
    row: 6,
    takesOut: 'the same in the text that the wallet signs',
    file: 'src/order/start.ts',
    find: 'confirmationCode: codeRequired ? undefined : confirmationCode,',
    replace: 'confirmationCode,',
    tests: ['test/order/approve.test.ts', 'test/order/start.test.ts'],
  },

  // 8: previews of links
  {
    row: 8,
    takesOut: 'the rule that the claim token is in the fragment',
    file: 'src/config/kinds.ts',
    find: "value.indexOf('{claimToken}') > hash &&",
    replace: '',
    tests: ['test/config.test.ts'],
  },

  // 9: tokens of an order
  {
    row: 9,
    takesOut: 'the check of the phone’s tokens',
    file: 'src/order/orders.ts',
    find: "if (!matches(token, hash)) throw refused('ORDER_TOKEN_INVALID')",
    replace: '',
    tests: orderTests,
  },
  {
    row: 9,
    takesOut: 'the check of the desktop’s token of callers that are not browsers',
    file: 'src/order/orders.ts',
    find: 'this.#admitHolder(order, desktopToken, order.desktopTokenHash)',
    replace: '',
    tests: orderTests,
  },
  {
    row: 9,
    takesOut: 'the rule that an order is used from its own origin',
    file: 'src/order/orders.ts',
    find: "this.#options.origins.requireSameOrOwn(request, order.origin, 'order')",
    replace: '',
    tests: orderTests,
  },

  // 10: a reader of the store
  {
    row: 10,
    takesOut: 'the hash of a token in the store',
    file: 'src/token.ts',
    find: "return hash('sha256', token, 'base64url')",
    replace: 'return token',
    tests: ['test/token.test.ts', 'test/host/sessions.test.ts'],
  },
  {
    row: 10,
    takesOut: 'the signature of session tokens',
    file: 'src/host/sessions.ts',
    find: "return this.#keyring.verify('session token', secretPart, signature) ? secretPart : undefined",
    replace: 'return secretPart',
    tests: sessionTests,
  },
  {
    row: 10,
    takesOut: 'the difference between a session’s id and what is compared',
    file: 'src/host/sessions.ts',
    find: '`session id\\n${secretPart}`',
    replace: 'secretPart',
    tests: sessionTests,
  },

  // 11: races
  {
    row: 11,
    takesOut: 'the comparison of versions in SQLite',
    file: 'src/store/sqlite.ts',
    find: 'WHERE key = ? AND version = ? AND expires_at > ?',
    replace: 'WHERE key = ? AND version >= min(?, 0) AND expires_at > ?',
    tests: ['test/store/sqlite.test.ts'],
  },
  {
    row: 11,
    takesOut: 'the comparison of versions in Redis',
    file: 'src/store/redis/scripts.ts',
    find: 'if version ~= ARGV[1] then return 0 end\n',
    replace: 'if not version then return 0 end\n',
    tests: ['test/store/redis/redis.test.ts'],
  },
  {
    row: 11,
    takesOut: 'the mark of an ended session',
    file: 'src/host/sessions.ts',
    find: "if ('ended' in record || ",
    replace: 'if (',
    tests: sessionTests,
  },
  {
    row: 11,
    takesOut: 'the store of a change before anybody is told of it',
    file: 'src/order/change.ts',
    find: 'if (order !== loaded.order && !(await records.compareAndSet(order, loaded.version))) continue',
    replace: 'if (order !== loaded.order) await records.compareAndSet(order, loaded.version)',
    tests: ['test/order/races.test.ts'],
  },
  {
    row: 11,
    takesOut: 'the end of the retries of a finalize',
    file: 'src/order/order.ts',
    find: ' && now < newestTransition(order).at + finalizeRetryMs',
    replace: '',
    tests: machineTests,
  },

  // 12: floods
  {
    row: 12,
    takesOut: 'the allowance of an address',
    file: 'src/rate-limit.ts',
    find: 'if (bucket.tokens < 1) {',
    replace: 'if (false) {',
    tests: ['test/rate-limit.test.ts'],
  },
  {
    row: 12,
    takesOut: 'the ceiling on calls that wait for the store',
    file: 'src/rpc/admission.ts',
    find: 'if (this.#taken >= this.#ceiling.most) {',
    replace: 'if (false) {',
    tests: ['test/e2e/ceilings.test.ts'],
  },

  // 13: guessed tokens
  {
    row: 13,
    takesOut: 'the 256 bits of a token',
    file: 'src/token.ts',
    find: 'const tokenBytes = 32',
    replace: 'const tokenBytes = 16',
    tests: ['test/token.test.ts'],
  },

  // 14: logs
  {
    row: 14,
    takesOut: 'the silence about what a body says',
    file: 'src/rpc/read-input.ts',
    find: "return new CountersignError('INVALID_REQUEST', 'The body is not valid JSON', { cause })",
    replace: "return new CountersignError('INVALID_REQUEST', String(cause), { cause })",
    tests: ['test/http/failed-calls.test.ts', 'test/e2e/robustness.test.ts'],
  },

  // 15: adding a wallet
  {
    row: 15,
    takesOut: 'the key of their own that nonces for adding a wallet have',
    file: 'src/sign-in/nonce.ts',
    find: '`link-nonce:${nonceId}`',
    replace: '`nonce:${nonceId}`',
    tests: linkTests,
  },
  {
    row: 15,
    takesOut: 'the check that such a nonce is the user’s own',
    file: 'src/sign-in/nonce.ts',
    find: '  if (record.userId !== userId) throw nonceNotFound()\n',
    replace: '',
    tests: linkTests,
  },
  {
    row: 15,
    takesOut: 'the user in what a nonce must begin with to be taken',
    file: 'src/sign-in/nonce.ts',
    find: 'textOf(beginning(origin, appName, userId))',
    replace: 'textOf(beginning(origin, appName, undefined))',
    tests: linkTests,
  },
  {
    row: 15,
    takesOut: 'the refusal of sessions that an order made',
    file: 'src/sign-in/link.ts',
    find: 'if (current.session.orderId !== undefined) {',
    replace: 'if (current.session.orderId === null) {',
    tests: linkTests,
  },
  {
    row: 15,
    takesOut: 'the freshness of the session',
    file: 'src/sign-in/link.ts',
    find: '    host.requireFresh(current.session)\n',
    replace: '',
    tests: linkTests,
  },
  {
    row: 15,
    takesOut: 'Better Auth’s freshAge',
    file: 'src/better-auth/endpoint-host.ts',
    find: '>= freshAge * 1000',
    replace: '>= 86_400_000',
    tests: linkTests,
  },
  {
    row: 15,
    takesOut: 'the refusal of another user’s wallet',
    file: 'src/better-auth/users.ts',
    find: '      if (owner !== undefined && owner.id !== userId) throw walletTaken()\n',
    replace: '',
    tests: linkTests,
  },
  {
    row: 15,
    takesOut: 'the refusal of a wallet that another instance adds to another user meanwhile',
    file: 'src/better-auth/users.ts',
    find: 'throw owner !== undefined && owner.id !== userId ? walletTaken() : cause',
    replace: 'throw cause',
    tests: linkTests,
  },
  {
    row: 15,
    takesOut: 'the refusal of user ids that could forge a line',
    file: 'src/sign-in/link.ts',
    find: '  if (isPlainLine(userId)) return\n',
    replace: '  if (isPlainLine(userId) || userId !== "") return\n',
    tests: linkTests,
  },
  {
    row: 15,
    takesOut: 'the check that the origin that asks for such a nonce is trusted',
    file: 'src/sign-in/link.ts',
    find: 'const origin = origins.requireTrusted(request)',
    replace: "const origin = request.origin ?? ''",
    tests: linkTests,
  },
  {
    row: 15,
    takesOut: 'the check that the proof comes from the nonce’s own origin',
    file: 'src/sign-in/nonce.ts',
    find: "origins.requireSame(request, record.origin, 'nonce')",
    replace: '',
    tests: linkTests,
  },
  {
    row: 15,
    takesOut: 'the check that a cookie of Better Auth comes from a trusted origin',
    file: 'src/better-auth/endpoint-host.ts',
    find: 'if (credential.fromCookie) originsOf(this.#ctx.context, this.#settings).requireTrusted(request)\n    const current',
    replace: 'const current',
    tests: linkTests,
  },
  {
    row: 15,
    takesOut: 'the proof',
    file: 'src/sign-in/link.ts',
    find: 'const identity = await prover.prove(message, proof)',
    replace:
      "void message, prover\n    const identity = { adapterId: 'ed25519', subject: proof.publicKeyHex, publicKeyHex: proof.publicKeyHex, address: '' }",
    tests: linkTests,
  },
]
