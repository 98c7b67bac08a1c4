import { createConfig, lintFromString } from '@redocly/openapi-core'
import { describe, expect, test } from 'vitest'
import { ErrorReasonSchema } from '../../gen/server/countersign/v1/error_reason_pb.ts'
import { openApiText } from '../../scripts/openapi.ts'
import { restEndpoints } from '../../src/http/rest/endpoints.ts'
import { resolveSettings } from '../../src/service/config.ts'
import { reasons } from '../../src/shared/errors.ts'
import { OpenApiContract, packagedDocument, reasonsOf } from '../support/openapi.ts'
import { startService } from '../support/service.ts'

const document = packagedDocument()
const contract = new OpenApiContract(document)

test('gen/openapi.json is what the protos and the endpoints make; if not, run `npm run generate`', async () => {
  expect(`${JSON.stringify(document, undefined, 2)}\n`).toBe(await openApiText())
})

describe('Redocly’s recommended rules find nothing', () => {
  const ref = 'openapi.json'
  // Any request for them is answered with 200 or 5xx.
  const withoutRefusals = ['healthz', 'readyz'].map((path) => `#/paths/~1${path}/get/responses`)

  test.each([
    ['the default settings', {}],
    ['other ones', { basePath: '/a/b', endpointPrefix: '/w', publicUrl: 'https://sign.company.test' }],
  ])('with %s', async (_, options) => {
    const { url } = await startService(options)
    const source = await (await fetch(`${url}/openapi.json`)).text()
    const ignore = { [ref]: { 'operation-4xx-response': new Set(withoutRefusals) } }
    const config = await createConfig({ extends: ['recommended'] }, { ignore })
    const problems = await lintFromString({ source, absoluteRef: ref, config })
    expect(problems.filter(({ ignored }) => !ignored).map(({ ruleId, message }) => `${ruleId}: ${message}`)).toEqual([])
    // The linter has seen it, and is not silent because it could not read it.
    expect(problems).toHaveLength(withoutRefusals.length)
  })
})

test('it has an operation for every REST endpoint, and one for the options beside them', () => {
  const { basePath, endpointPrefix } = resolveSettings()
  const endpoints = restEndpoints({ basePath, endpointPrefix })
  const operations = contract.operations.filter(({ path }) => path.startsWith(basePath))
  expect(operations.map(({ httpMethod, path }) => `${httpMethod} ${path}`).sort()).toEqual(
    [...endpoints.map(({ httpMethod, path }) => `${httpMethod} ${path}`), `GET ${basePath}/options`].sort(),
  )
})

test('validation rules of the protos are keywords of its schemas', () => {
  expect(document.components.schemas).toMatchObject({
    IssueNonceRequest: { properties: { appName: { minLength: 1, maxLength: 80 } } },
    VerifySignInRequest: {
      required: ['nonceId', 'signatureHex'],
      properties: {
        nonceId: { pattern: '^[A-Za-z0-9_-]{1,64}$' },
        publicKeyHex: { maxLength: 512, pattern: '^([0-9a-fA-F]{2})*$' },
      },
    },
    StartOrderRequest: { required: ['kind'], properties: { payload: { maxLength: 8192 } } },
    StartOrderRequester: {
      required: ['origin'],
      properties: {
        ip: {
          type: 'string',
          anyOf: ['ipv4', 'ipv6'].map((format) => ({ type: 'string', format, maxLength: 45 })),
          not: { pattern: '%' },
        },
      },
    },
  })
  const bounded = JSON.stringify(document.components.schemas).match(/"(?:pattern|maxLength)":/g) ?? []
  expect(bounded.length).toBeGreaterThan(50)
})

test('it lists every reason, with the status that it is answered with', () => {
  const { enum: listed, description } = document.components.schemas.ErrorReason as {
    enum?: string[]
    description?: string
  }
  expect(listed).toEqual(Object.keys(reasons))
  for (const { localName, number } of ErrorReasonSchema.values) {
    if (number !== 0) expect(description).toMatch(new RegExp(`^- \`${localName}\`: \\S`, 'm'))
  }
  for (const { operationId, responses } of contract.operations) {
    for (const [status, response] of Object.entries(responses)) {
      for (const reason of Number(status) < 400 ? [] : reasonsOf(response)) {
        expect(reasons[reason as keyof typeof reasons].http, operationId).toBe(Number(status))
      }
    }
  }
})

test('no text has a name that REST does not have, or speaks of other protocols', () => {
  const texts = [...JSON.stringify(document).matchAll(/"(?:description|summary)":"((?:[^"\\]|\\.)*)"/g)].map(
    ([, text]) => text as string,
  )
  expect(texts.length).toBeGreaterThan(200)
  for (const text of texts) {
    const names = text.match(/\b[a-z]+(?:_[a-z0-9]+)+\b/g) ?? []
    // Words of enums are written so.
    expect(
      names.filter((name) => !['waiting_user', 'sign_in'].includes(name)),
      text,
    ).toEqual([])
    expect(text).not.toMatch(/RetryInfo|ErrorInfo|buf\.validate|Connect:|Metadata:/)
  }
})
