import type { DescMessage } from '@bufbuild/protobuf'
import { nestedTypes } from '@bufbuild/protobuf/reflect'
import { beforeAll, expect, test } from 'vitest'
import { ErrorReasonSchema } from '../../gen/server/countersign/v1/error_reason_pb.ts'
import { OrderService } from '../../gen/server/countersign/v1/order_service_pb.ts'
import { reasonsIn, rpcComment } from '../../scripts/docs/comments.ts'
import { isAlwaysSet } from '../../scripts/docs/protocol.ts'
import { endpoints, rpcs, services } from '../../scripts/docs/services.ts'
import { type Commented, readProtoComments } from '../../scripts/proto-comments.ts'
import { type ErrorReason, reasons } from '../../src/shared/errors.ts'
import { OpenApiContract, packagedDocument, reasonsOf } from '../support/openapi.ts'
import { startService } from '../support/service.ts'
import { executedSnippets, runShell } from '../support/snippets.ts'
import { type Answer, everyCall } from './every-call.ts'

const comments = await readProtoComments()
const contract = new OpenApiContract(packagedDocument())
const [curl] = await executedSnippets('docs/protocol.md')

test('the call with curl answers a challenge', async () => {
  const { url } = await startService()
  const { stdout } = await runShell(curl?.code ?? '', url)
  expect(JSON.parse(stdout)).toMatchObject({ action: 'auth.login', issuedAt: expect.stringMatching(/^\d{13}$/) })
})

test('every part of the protos has a comment, which generated code finds by its name', () => {
  const parts = [...services, ErrorReasonSchema].flatMap(({ file }) => [...nestedTypes(file)])
  const all = parts.flatMap((part): Commented[] => {
    switch (part.kind) {
      case 'message':
        return [part, ...part.fields]
      case 'enum':
        return [part, ...part.values]
      case 'service':
        return [part, ...part.methods]
      default:
        return []
    }
  })
  expect(all.length).toBeGreaterThan(300)
  expect(all.filter((part) => comments.of(part) === '').map(String)).toEqual([])
})

/** Reasons that calls can fail for without listing them. */
const general = new Set(Object.keys(reasons).filter((name) => reasons[name as ErrorReason].any !== 'none'))

test('every reason is one of any call, of some calls, or of what is no call', () => {
  const documented = new Set<string>(rpcs.flatMap((rpc) => reasonsIn(rpcComment(rpc, comments).errors)))
  const others = Object.keys(reasons).filter((reason) => !general.has(reason) && !documented.has(reason))
  expect(new Set(others)).toEqual(new Set(['ROUTE_NOT_FOUND', 'METHOD_NOT_ALLOWED', 'GROUP_REQUIRED']))
})

let answers: readonly Answer[] = []

beforeAll(async () => {
  answers = [...(await everyCall({})), ...(await everyCall({ confirmationCode: 'return' }))]
}, 180_000)

test('no call fails for a reason that its comment does not list', () => {
  const undocumented = answers.filter(({ rpc, reason }) => {
    if (reason === undefined || general.has(reason)) return false
    return !reasonsIn(rpcComment(rpc, comments).errors).some((listed) => listed === reason)
  })
  expect(undocumented.map(({ rpc, reason }) => `${rpc.name} ${reason}`)).toEqual([])
  const seen = new Set(answers.filter(({ reason }) => reason).map(({ rpc, reason }) => `${rpc.name} ${reason}`))
  expect(seen.size).toBeGreaterThan(80)
})

test('no call over REST fails for a reason that the OpenAPI document does not have', () => {
  const undocumented = answers.filter(({ rpc, reason, overRest }) => {
    return overRest && reason !== undefined && !reasonsOfOperation(rpc.localName).includes(reason)
  })
  expect(undocumented.map(({ rpc, reason }) => `${rpc.name} ${reason}`)).toEqual([])
})

test('a field that the page calls always set is in every answer over REST', () => {
  const good = answers.filter(({ reason, overRest }) => reason === undefined && overRest)
  const answered = new Set(good.map(({ rpc }) => rpc.name))
  const unanswered = endpoints.map(({ rpc }) => rpc.name).filter((name) => !answered.has(name))
  // An inbox takes a start key, becoming known a computer with a key: inbox.test.ts and known-computers.test.ts of
  // test/e2e.
  expect(unanswered).toEqual(['ClaimFromInbox', 'ForgetKnownComputer'])
  for (const { rpc, body } of good) {
    const messages = rpc === OrderService.method.watchOrder ? (body.events as object[]) : [body]
    for (const message of messages) expectWhole(rpc.output, message)
  }
})

function reasonsOfOperation(operationId: string): string[] {
  const operation = contract.operations.find((each) => each.operationId === operationId)
  return Object.values(operation?.responses ?? {}).flatMap(reasonsOf)
}

function expectWhole(desc: DescMessage, json: object): void {
  for (const field of desc.fields) {
    const value: unknown = Reflect.get(json, field.jsonName)
    if (isAlwaysSet(field, comments)) expect(value, `${field}`).toBeDefined()
    if (field.fieldKind === 'message' && value !== undefined) expectWhole(field.message, value as object)
    if (field.fieldKind === 'list' && field.listKind === 'message') {
      for (const entry of value as object[]) expectWhole(field.message, entry)
    }
  }
}
