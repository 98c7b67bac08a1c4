import { nestedTypes } from '@bufbuild/protobuf/reflect'
import { beforeAll, expect, test } from 'vitest'
import { ErrorReasonSchema } from '../../gen/server/countersign/v1/error_reason_pb.ts'
import { reasonsIn, rpcComment } from '../../scripts/docs/comments.ts'
import { rpcs, services } from '../../scripts/docs/services.ts'
import { type Commented, readProtoComments } from '../../scripts/proto-comments.ts'
import { type ErrorReason, reasons } from '../../src/shared/errors.ts'
import { OpenApiContract, packagedDocument, reasonsOf } from '../support/openapi.ts'
import { readFromRoot } from '../support/repository.ts'
import { rest } from '../support/rest.ts'
import { startService } from '../support/service.ts'
import { executedSnippets, runShell } from '../support/snippets.ts'
import { blocksOf } from './blocks.ts'
import { type Answer, everyCall } from './every-call.ts'

const comments = await readProtoComments()
const contract = new OpenApiContract(packagedDocument())
const [curl] = await executedSnippets('docs/protocol.md')

test('the call with curl answers a challenge', async () => {
  const { url } = await startService()
  const { stdout } = await runShell(curl?.code ?? '', url)
  expect(JSON.parse(stdout)).toMatchObject({ action: 'auth.login', issuedAt: expect.stringMatching(/^\d{13}$/) })
})

test('the text to sign is that of the page', async () => {
  const [shown = ''] = blocksOf(await readFromRoot('docs/protocol.md')).flatMap(({ language, text }) =>
    language === 'text' ? [text.trimEnd()] : [],
  )
  const origin = 'https://app.example'
  const { url } = await startService({ appName: 'Example', publicUrl: origin })
  const { message } = (await rest(url, '/wallet/nonce', {}, { origin })).json
  const fixed = (text: string) => text.replaceAll(/^(Nonce|Issued At|Expires At): .*$/gm, '$1')
  expect(fixed(shown)).toBe(fixed(message))
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

function reasonsOfOperation(operationId: string): string[] {
  const operation = contract.operations.find((each) => each.operationId === operationId)
  return Object.values(operation?.responses ?? {}).flatMap(reasonsOf)
}
