// biome-ignore-all lint/suspicious/noTemplateCurlyInString: the texts are those of source files, template strings included.
import type { Mutation } from './mutation.ts'

/**
 * Every row of SECURITY.md's table, with mutations that take its defences out: the declaration of src that has the
 * defence (see `Mutation`), the text in it, what comes in its place, and the names of the test files that notice.
 */
const rows: Readonly<
  Record<number, readonly (readonly [within: string, find: string, replace: string, tests: string])[]>
> = {
  1: [
    [
      'isStrictPoint',
      '&& !smallOrderYs.some((small) => small.every((byte, index) => byte === y[index]))',
      '',
      'core/wallet/strict-ed25519',
    ],
    ['isStrictPoint', 'isBelow(y, fieldPrime) &&', '', 'core/wallet/strict-ed25519'],
    ['isStrictEncoding', 'isBelow(signature.subarray(32), groupOrder) &&', '', 'core/wallet/strict-ed25519'],
    [
      'verify',
      'if (!isStrictEncoding(signature, publicKey)) return false',
      '',
      'core/wallet/native core/wallet/agreement',
    ],
    [
      'ed25519Adapter',
      '!verifier.verify(signature, framing.signedBytes(message), publicKey)',
      'false',
      'core/wallet/adapters',
    ],
    ['prove', 'adapterId !== adapter.id', 'false', 'core/wallet/adapters'],
    ['derivedUserId', '`${adapterId}:${subject}`', 'subject || adapterId', 'contract/standalone e2e/sessions'],
  ],
  2: [
    ['requireLive', 'now < expiresAt', 'now < expiresAt + 30_000', 'core/sign-in/nonce'],
    ['readNonce', 'record.nonceId !== nonceId ||', '', 'core/sign-in/nonce'],
    [
      'consume',
      '(await this.#store.take(key)) !== found',
      '(await this.#store.take(key)) === null',
      'core/sign-in/nonce-replaced',
    ],
    [
      'singleUse',
      "if (!(await store.create(`used-${key}`, '', { ttlMs }))) return undefined",
      '',
      'core/sign-in/nonce',
    ],
    [
      'take',
      'DELETE FROM entries WHERE key = ? AND expires_at > ? RETURNING value',
      'SELECT value FROM entries WHERE key = ? AND expires_at > ?',
      'store/sqlite core/sign-in/nonce',
    ],
    ['trusted', 'if (performance.now() >= this.#trustedUntil) await this.confirm()', '', 'store/redis/sentinel'],
    ['heard', 'if (silent) this.#confirm(client, confirm)', '', 'e2e/chaos'],
    [
      'makeChallenge',
      'crypto.getRandomValues(new Uint8Array(32))',
      'crypto.getRandomValues(new Uint8Array(32)).fill(0, 4)',
      'base/randomness',
    ],
  ],
  3: [
    [
      'issueNonce',
      'origins.requireTrusted(request) nonces.requireAppName(expectedAppName) const make',
      "request.origin ?? ''; nonces.requireAppName(expectedAppName); const make",
      'e2e/sign-in contract/standalone',
    ],
    ['requireOneOf', '&& expected.includes(request.origin)', '', 'shared/origin'],
    ['requesterOf', 'origins.requireTrusted(request)', "request.origin ?? ''", 'core/order/start core/order/orders'],
    ['challengeMessage', '`Origin: ${challenge.origin}`,', '', 'core/challenge'],
    ['predicateOf', 'origins.has(origin)', '[...origins].some((one) => origin.startsWith(one))', 'e2e/origins'],
  ],
  4: [
    [
      'currentSession',
      "if (credential.form === 'cookie') this.#origins.requireTrusted(request)",
      '',
      'e2e/sessions core/users/contract',
    ],
    ['tokenOf', '`${form} ${token}`', 'token', 'e2e/sessions'],
    ['purposes', "'session cookie'", "'session token'", 'e2e/sessions'],
    ['cookie', 'HttpOnly;', '', 'e2e/sessions'],
    ['cookie', "secure ? ' Secure;' : ''", "''", 'e2e/sessions'],
    ['sessionCookieName', 'secure ? `__Host-${plainCookieName}` :', '', 'e2e/sessions'],
    ['applyCors', '&& isTrusted(origin)', '', 'e2e/origins'],
    ['headersOf', `"script-src 'self'",`, '', 'http/pages/headers'],
    ['escapeHtml', `[&<>"']`, '[&]', 'http/pages/serve better-auth/pages'],
    ['signOut', '|| this.#hasCookieOf(credential.text, request)', '', 'e2e/sessions'],
    ['jsonBody', '!isJson(headers)', '!isJson(headers) && bytes.length > 1e6', 'e2e/bodies'],
  ],
  5: [
    ['oneLine', 'requirePlainLine(field, text)', '', 'core/order/start'],
    ['forbidden', '\\p{Default_Ignorable_Code_Point}', '\\p{Cc}', 'core/challenge'],
    ['newOrder', 'requireReturnPath(returnTo)', '', 'core/order/start'],
    ['challengeMessage', '${challenge.nonce}', '', 'core/challenge'],
  ],
  6: [
    ['claim', "claimed: 'ORDER_ALREADY_CLAIMED'", "claimed: 'moves'", 'core/order/order'],
    ['maxWrongCodes', '3', '30', 'core/order/order'],
    ['comparedCode', 'returnCodes ? {} : { confirmationCode }', '{ confirmationCode }', 'core/order/orders'],
    ['newCode', 'randomInt(100)', 'randomInt(10)', 'base/randomness'],
  ],
  7: [
    ['checkReturnCode', "{ order, refusal: 'RETURN_CODE_REQUIRED' }", 'undefined', 'relay/relay'],
    ['checkReturnCode', "right.includes(true) ? 'right' : 'wrong'", "'right'", 'relay/return-code'],
    [
      'checkReturnCode',
      "order.status === 'approved' && codeTriesLeft(counted) === 0",
      'false',
      'relay/return-code',
    ],
    [
      'requireNearby',
      'if (sameNetwork(order.requester.network, networkOfRequest(request)) === true)',
      '',
      'relay/relay',
    ],
    ['approve', 'this.#admission.requireNearby(order, request)', '', 'relay/requester'],
  ],
  8: [
    ['claimUrlTemplate', "value.indexOf('{claimToken}') > hash &&", '', 'service/config'],
    ['preview', "claimed: 'ORDER_ALREADY_CLAIMED'", "claimed: 'same'", 'core/order/order'],
    ['preview', 'const { ip: _ip, ...requester }', 'const requester', 'core/order/orders'],
  ],
  9: [
    ['requireHolder', '!matchesAny(token, hashes)', 'false', 'core/order/orders'],
    ['requireOrigin', "this.#origins.requireSameOrOwn(request, order.origin, 'order')", '', 'core/order/orders'],
    ['orderInput', "[tokenField]: bearer ?? ''", "[tokenField]: bearer ?? queried(tokenField) ?? ''", 'e2e/orders'],
    [
      'prove',
      'order.adapterId !== undefined && (proof.adapterId ?? order.adapterId) !== order.adapterId',
      'false',
      'core/order/approve',
    ],
    ['challengeTokens', '[orderId,', "[orderId && '',", 'core/order/derived-tokens'],
    ['finalize', 'desktopToken]', "desktopToken && '']", 'core/order/derived-tokens'],
  ],
  10: [
    ['hashToken', "hash('sha256', token, 'base64url')", 'token', 'base/token core/users/sessions'],
    ['signed', '!this.#keyring.verify(purposes[form], secretPart, signature)', 'false', 'core/users/sessions'],
    ['isSameText', '=== value && last.version === version', '!== undefined', 'core/users/sessions'],
    ['ownFile', '0o600', '0o644', 'store/sqlite'],
    [
      'unsignedToken',
      'equalInConstantTime(signatureOf(token, secret), signature)',
      'signature',
      'better-auth/sessions better-auth/host contract/better-auth',
    ],
    ['secret', 'secrets(32)', 'secrets(31)', 'e2e/secrets'],
  ],
  11: [
    ['compareAndSet', 'version = ? AND', 'version >= min(?, 0) AND', 'store/sqlite'],
    ['compareAndSet', 'version ~= ARGV[1]', 'not version', 'store/redis/redis'],
    ['isLive', "!('ended' in record) &&", '', 'core/users/sessions'],
    [
      'changeOrder',
      'if (!(await records.compareAndSet(order, loaded.version))) continue',
      'await records.compareAndSet(order, loaded.version)',
      'core/order/races',
    ],
    [
      'write',
      "(await this.#store.compareAndSet(key, stored.version, text, 'forever'))",
      'stored.version > 0',
      'e2e/sessions',
    ],
  ],
  12: [
    ['take', 'waitUs > 0', 'false', 'limits/rate'],
    ['tryTake', 'this.#taken + slots > this.most', 'false', 'http/port/ceilings'],
    ['tryTake', 'this.#held.of(network) + slots > this.mostOfNetwork', 'false', 'http/port/ceilings e2e/ceilings'],
    ['takeRequest', 'reserve?.tryTake(site)', 'reserve?.tryTake(undefined)', 'http/port/ceilings'],
    ['add', 'this.#groupOf(site)', 'undefined', 'limits/live-count'],
    ['addMember', 'count > 2 * most', 'false', 'store/redis/redis'],
    [
      'writeAll',
      "if (!output.write(piece)) await once(output.answering, 'drain', { signal })",
      'output.write(piece)\nawait new Promise(setImmediate)\nif (signal.aborted) return',
      'wire/output',
    ],
    ['defaultTimeouts', 'openingMs: 10_000', 'openingMs: 100_000', 'e2e/time-limits'],
    ['follow', 'stopping ? ServingStatus.NOT_SERVING :', '', 'rpc/health e2e/health'],
    ['builtIn', '{ ttlMs: ttlSeconds * 1000 + afterlifeMs }', "'forever'", 'e2e/store-lives'],
    ['readBody', 'if (size > maxBytes) reject(refusals.bodyTooLarge()) else', '', 'e2e/bodies'],
    ['decompressed', 'maxOutputLength: maxBodyBytes', '', 'e2e/bodies'],
    ['isCompressedEnvelope', 'length > maxBodyBytes', 'false', 'e2e/bodies'],
    ['makeDomain', 'limits && new RateLimiter', 'limits && false && new RateLimiter', 'e2e/rate-limits'],
    ['limitBodies', 'maxBodyBytes', '1e9', 'better-auth/body-limit'],
    ['countWrongToken', 'isToken && limited instanceof CountersignError ? limited :', '', 'e2e/shared-limits'],
  ],
  13: [
    ['tokenBytes', '32', '16', 'base/token'],
    ['newToken', 'randomText(tokenBytes)', "randomText(4).padEnd(43, 'A')", 'base/randomness'],
  ],
  14: [
    [
      'withoutArguments',
      '!(cause instanceof Error) || !cause.message.includes(argumentsStart)',
      'cause !== null',
      'store/redis/operators',
    ],
    ['observed', 'request: context', 'path: exchange.path, request: context', 'e2e/stopping e2e/reasons'],
    ['writeRefusal', "told.includes('message') ? message : undefined", 'message', 'observe/call-log'],
    ['servedPage', "'cache-control': 'no-store',", '', 'http/pages/serve'],
  ],
  15: [
    ['readNonce', 'record.userId !== userId', 'false', 'better-auth/linking core/sign-in/nonce'],
    ['freshSession', 'current.session.orderId !== undefined', 'false', 'better-auth/linking core/sign-in/nonce'],
    ['freshSession', 'host.requireFresh(current.session)', '', 'better-auth/linking core/sign-in/nonce'],
    ['link', 'owner !== undefined && owner.id !== userId', 'false', 'better-auth/linking core/sign-in/nonce'],
    ['consume', "origins.requireSame(request, record.origin, 'nonce')", '', 'better-auth/linking core/sign-in/nonce'],
  ],
  16: [
    ['mismatchReason', 'record.appName !== appName', 'false', 'e2e/shared-store core/sign-in/nonce core/order/foreign'],
    ['mismatchReason', '!origins.accepts(record.origin)', 'false', 'e2e/shared-store core/order/foreign'],
    ['requireHolder', "if (mismatch !== undefined) throw refused('ORDER_NOT_FOUND', mismatch)", '', 'e2e/shared-store'],
    ['consume', 'mismatch !== undefined', 'false', 'e2e/shared-store'],
    ['withKeyPrefix', "beginning === ''", 'true', 'e2e/shared-store'],
    ['originsOf', 'context.isTrustedOrigin(origin)', 'true', 'better-auth/shared-store'],
  ],
  17: [
    ['makeDomain', 'guardedHost(sessionHost, tracing)', 'settings.sessionHost', 'e2e/hooks'],
    ['verify', 'afterNonceUsed(thrown)', 'thrown', 'e2e/hooks'],
  ],
  18: [
    ['now', 'this.#clock.now()', 'Date.now()', 'e2e/clocks'],
    ['isCurrent', '&& !hasJumped(this.#known)', '', 'store/redis/clock'],
  ],
  19: [
    ['requireComputerProof', 'if (computerKey === undefined)', '', 'relay/known-computers relay/relay'],
    [
      'provesComputerKey',
      "verify('sha256', Buffer.from(proofText(subject)), { key, dsaEncoding: 'ieee-p1363' }, signature)",
      'true',
      'relay/known-computers',
    ],
    ['decide', 'rememberComputer &&', '', 'relay/known-computers'],
  ],
  20: [
    ['decideEarly', "order.takenBack !== undefined && intent.type === 'finalize'", 'false', 'relay/taking-back'],
    [
      'endSession',
      'await this.#options.host.endOrderSession(session)',
      'session.userId !== session.sessionId',
      'relay/taking-back',
    ],
    ['reject', "approved: 'moves'", "approved: 'ORDER_ALREADY_APPROVED'", 'relay/taking-back'],
  ],
  21: [
    ['isRedeemable', 'handOver.redeemedAt === undefined &&', '', 'relay/hand-over'],
    ['ofPhone', '[order.challengeTokenHash]', 'phoneHashes(order)', 'relay/hand-over relay/relay'],
  ],
  22: [['requireStartKey', 'right.includes(true)', 'right.length > 0', 'relay/requester']],
  23: [
    [
      'prove',
      '&& (expectedAddress === undefined || prover.isAddressOf(identity, expectedAddress))',
      '',
      'relay/requester',
    ],
  ],
  24: [
    ['requireFresh', 'this.#store.now() - createdAt >= freshMs', 'false', 'e2e/wallets'],
    ['holding', 'claim?.userId === userId && claim.claim === entry.claim', 'claim !== undefined', 'core/users/users'],
    ['unlink', 'staying.length === 1', 'false', 'e2e/wallets core/users/users'],
  ],
  25: [
    [
      'signInForm',
      'base64urlnopad.encode(sha256(new TextEncoder().encode(message)))',
      'message.slice(0, 0)',
      'core/wallet/form',
    ],
    ['textOf', 'pageOrigin ??', '', 'core/wallet/form'],
  ],
  26: [
    ['recoverKey', 'parsed.hasHighS()', 'false', 'core/wallet/ethereum/keys'],
    ['verify', '!isKey(publicKey)', 'false', 'core/wallet/solana-vectors'],
    [
      'askContract',
      'await hasCode(address, request)',
      'wrapped.factory === undefined',
      'core/wallet/ethereum/contracts',
    ],
  ],
  27: [['maxContractChecks', '3', '300', 'core/order/contract-checks core/wallet/ethereum/service']],
  28: [
    ['verifyAccessToken', "typ: 'at+jwt',", '', 'integrations/backend/access-token'],
    ['verifyAccessToken', 'algorithms: [...algorithms],', '', 'integrations/backend/access-token'],
    [
      'verifyAccessToken',
      'issuer, audience, clockTolerance:',
      'audience, clockTolerance:',
      'integrations/backend/access-token',
    ],
    [
      'verifyAccessToken',
      'issuer, audience, clockTolerance:',
      'issuer, clockTolerance:',
      'integrations/backend/access-token',
    ],
    ['holderOf', 'cnf !== undefined', 'false', 'integrations/backend/access-token'],
    ['holderOf', 'scopes === undefined', 'false', 'integrations/backend/access-token'],
    ['holderOf', 'missing.length > 0', 'false', 'integrations/backend/access-token'],
    ['requireTimes', '[iat, exp, nbf]', '[iat, nbf]', 'integrations/backend/access-token'],
    [
      'verifyAccessToken',
      'requireOptions(issuer, audience, clockToleranceSeconds)',
      '',
      'integrations/backend/access-token',
    ],
  ],
  29: [
    ['issue', '!audiences.includes(audience)', 'false', 'e2e/access-tokens'],
    [
      'issue',
      'Math.min(now + ttlSeconds * 1000, session.expiresAt)',
      'now + ttlSeconds * 1000',
      'core/access-token/access-tokens',
    ],
    ['deriveSigningKeys', "'access token key'", "'finalize seed'", 'core/access-token/signing-keys'],
  ],
  30: [
    [
      'peekSession',
      "if (credential.form === 'cookie') this.#requireProxiedOrigin(request, reads)",
      '',
      'http/forward-auth',
    ],
    ['requireProxiedOrigin', 'else if (!reads) throw proxiedOriginRequired()', '', 'http/forward-auth'],
    ['isReading', 'told.every(', 'told.some(', 'http/forward-auth'],
    ['returnTo', '&& isReturnPath(told)', '', 'http/forward-auth'],
    ['docs/forward-auth.md', 'proxy_set_header X-Countersign-User $countersign_user;', '', 'e2e/forward-auth'],
  ],
  31: [
    ['check', '`${credential.form} ${credential.text}`', 'credential.text', 'integrations/backend/session-verifier'],
    ['refusalOf', 'trusts(origin, ownOrigin)', 'true', 'integrations/backend/session-verifier'],
    ['refusalOf', "method === 'GET' || method === 'HEAD'", 'true', 'integrations/backend/session-verifier'],
    ['cookieValue', 'others.length === 0 &&', '', 'integrations/backend/session-verifier'],
    ['ask', 'Math.min(startedAt', 'Math.min(performance.now()', 'integrations/backend/session-verifier'],
  ],
  32: [
    ['returnTarget', '|| !isReturnPath(returnTo)', '', 'browser/pages/return-target'],
    ['getItem', '() => null', '(key) => localStorage.getItem(key)', 'browser/sign-in-page'],
  ],
  33: [
    ['readSignedText', 'lines.has(name)', 'false', 'integrations/proof/vectors'],
    ['verifyProofArtifact', 'requireAccount(text, identity, adapter)', '', 'integrations/proof/vectors'],
  ],
  34: [['rules', 'secureOptions: constants.SSL_OP_NO_RENEGOTIATION', '', 'http/port/tls']],
  35: [['observeCall', 'answersOnce === undefined ? other :', '', 'observe/metrics/metrics']],
  36: [
    ['matching', 'text !== undefined && form.test(text)', 'form.source !== text', 'observe/audit/events'],
    ['refusedCalls', "ip ?? ''", 'String(Math.random())', 'observe/audit/events'],
    ['claimOne', 'entry.v !== 1 || this.#store.now() < entry.dueAt', 'false', 'observe/audit/webhook'],
  ],
  37: [['deploy/nginx/countersign.conf', 'grpc_set_header X-Forwarded-For $remote_addr;', '', 'e2e/proxies']],
  38: [
    ['refusalOf', 'found?.blockedAt !== undefined', 'false', 'core/users/user-administration'],
    ['constructor', 'await new WebhookQueue(store).forget({ userId, wallets })', '', 'commands/admin'],
  ],
  39: [
    ['workerCount', "typeof store === 'string' && store.startsWith('sqlite:')", 'false', 'e2e/workers'],
    ['textOf', 'text !== undefined', 'text === variable', 'service/config'],
  ],
  40: [['removeKeys', 'DELETE FROM entries WHERE matches(key);', '', 'commands/backup']],
  41: [
    [
      'headers',
      'trace.setSpanContext(ROOT_CONTEXT, { traceId, spanId, traceFlags })',
      'context.active()',
      'observe/tracing/secrecy',
    ],
  ],
  42: [
    ['consume', '&& usedAt === undefined', '', 'oidc/security'],
    ['consume', 'if (grantId !== undefined) await grants.remove(grantId)', '', 'oidc/adapter'],
    ['give', 'if ((await host.findSession(sessionId)) !== undefined) return id', 'return id', 'oidc/adapter'],
    ['isIssuedTo', 'token.clientId === client.clientId', 'true', 'oidc/security'],
    ['sessionOf', 'await host.findSession(grant.sessionId)', '{ userId: grant.accountId }', 'oidc/ends'],
    ['isInGrace', 'usedAt + graceOf(payload)', 'Number.POSITIVE_INFINITY', 'oidc/adapter'],
  ],
  43: [
    ['inputOf', 'headers.origin !== own', 'false', 'oidc/security'],
    ['find', '|| !isOfBrowser(found.record)', '', 'oidc/security'],
    ['decide', '|| session.id !== sessionId', '', 'oidc/security'],
    ['grantFor', '!isWeb(redirectUris) || ', '', 'oidc/security'],
  ],
  44: [
    ['read', 'app?.connection === record.connection', 'true', 'oidc/offline'],
    ['find', 'isFree && (await host.offline.find(sessionUid)) === undefined', 'false', 'oidc/offline'],
    [
      'sessionHandlers',
      'await offline?.endThose(own.userId, (session) => session.id !== own.id && reaches(own, session))',
      '',
      'oidc/offline',
    ],
    ['sessionHandlers', 'apps?.requireOwnOrigin(call.request)', '', 'oidc/offline'],
  ],
  45: [
    ['sessionHandlers', 'if (!reaches(own, session)) throw sessionOutOfReach()', '', 'rpc/session-service'],
    [
      'sessionHandlers',
      'filter((session) => session.id !== own.id && reaches(own, session))',
      'filter((session) => session.id !== own.id)',
      'rpc/session-service',
    ],
  ],
  46: [
    ['permissionsIn', 'resources.get(address)?.scopes.includes(each)', 'true', 'oidc/resources'],
    ['holderOf', 'if (scopes === undefined)', 'if (false)', 'oidc/resources'],
    ['postToPublic', 'isIP(host) !== 0 && isSpecialAddress(host)', 'false', 'oidc/back-channel'],
    ['publicLookup', 'found.some(({ address }) => isSpecialAddress(address))', 'false', 'oidc/back-channel'],
    ['queueLogouts', 'if ((await host.findSession(sessionId)) !== undefined) continue', '', 'oidc/back-channel'],
  ],
}

/** Every defence that SECURITY.md names. */
export const mutations: readonly Mutation[] = Object.entries(rows).flatMap(([row, entries]) =>
  entries.map(([within, find, replace, tests]) => ({
    row: Number(row),
    within,
    find,
    replace,
    tests: tests.split(' ').map((name) => `test/${name}.test.ts`),
  })),
)
