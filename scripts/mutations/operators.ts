import type { Mutation } from './mutation.ts'

const tls = { row: 34, tests: ['test/http/port/tls.test.ts'] }
const trail = { row: 36, tests: ['test/audit/events.test.ts'] }
const blocked = { row: 38, tests: ['test/commands/admin.test.ts'] }

/** Defences of what operators run and read, and of what they do. Rows 34 to 41. */
export const operators: readonly Mutation[] = [
  {
    ...tls,
    takesOut: 'the refusal of renegotiation',
    file: 'src/http/port/handshakes.ts',
    find: ', secureOptions: constants.SSL_OP_NO_RENEGOTIATION }',
    replace: ' }',
  },
  {
    row: 35,
    tests: ['test/metrics/metrics.test.ts'],
    takesOut: 'the fixed list of the methods in labels',
    file: 'src/metrics/metrics.ts',
    find: 'const known = answersOnce === undefined ? other : method',
    replace: 'const known = method',
  },
  {
    ...trail,
    takesOut: 'the look at what a caller names before it is told',
    file: 'src/rpc/named-in-call.ts',
    find: 'return text !== undefined && form.test(text) ? text : undefined',
    replace: 'return form.source === text ? undefined : text',
  },
  {
    ...trail,
    takesOut: 'the thinning of refusals',
    file: 'src/rpc/refused-calls.ts',
    find: "sampler.add(ip ?? '', ",
    replace: 'sampler.add(String(Math.random()), ',
  },
  {
    row: 36,
    tests: ['test/audit/webhook.test.ts'],
    takesOut: 'the one instance that delivers an event',
    file: 'src/audit/webhook-queue.ts',
    find: 'if (entry.v !== 1 || this.#store.now() < entry.dueAt) return undefined',
    replace: '',
  },
  {
    row: 37,
    tests: ['test/e2e/proxies.test.ts'],
    takesOut: 'the address of the client in nginx’s gRPC requests',
    file: 'deploy/nginx/countersign.conf',
    find: '  grpc_set_header X-Forwarded-For $remote_addr;\n',
    replace: '',
  },
  {
    ...blocked,
    takesOut: 'the second look for a block, once the session is stored',
    file: 'src/host/users.ts',
    find: 'if (found?.blockedAt !== undefined) return loginRefused()',
    replace: '',
    tests: ['test/host/user-administration.test.ts'],
  },
  {
    ...blocked,
    takesOut: 'the comparison of a wallet’s claim with what its user was found by, once the session is stored',
    file: 'src/host/users.ts',
    find: 'isSame(claim, before.claim) && ',
    replace: '',
    tests: ['test/host/user-administration.test.ts'],
  },
  {
    ...blocked,
    takesOut: 'the end of what waits for a webhook of a deleted user',
    file: 'src/commands/admin/office.ts',
    find: '        await new WebhookQueue(store).forget({ userId, wallets })\n',
    replace: '',
  },
  {
    row: 39,
    tests: ['test/e2e/workers.test.ts'],
    takesOut: 'the refusal of workers that would have a store each',
    file: 'src/commands/workers/worker-count.ts',
    find: "if (typeof store === 'string' && store.startsWith('sqlite:')) {",
    replace: "if (store === '') {",
  },
  {
    row: 39,
    tests: ['test/config.test.ts'],
    takesOut: 'the refusal of a secret that comes from a variable and from a file',
    file: 'src/config.ts',
    find: 'if (text !== undefined) throw',
    replace: 'if (text === variable) throw',
  },
  {
    row: 40,
    tests: ['test/commands/backup.test.ts'],
    takesOut: 'the end of nonces and orders in a backup that is restored',
    file: 'src/store/sqlite-copy.ts',
    find: '      DELETE FROM entries WHERE matches(key);\n',
    replace: '',
  },
  {
    row: 41,
    tests: ['test/tracing/secrecy.test.ts'],
    takesOut: 'the loss of what callers wrote, on the way to third parties',
    file: 'src/opentelemetry/index.ts',
    find: 'propagation.inject(trace.setSpanContext(ROOT_CONTEXT, { traceId, spanId, traceFlags }), headers)',
    replace: 'propagation.inject(context.active(), headers)',
  },
]
