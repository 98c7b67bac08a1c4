import { readFileSync } from 'node:fs'
import { isIPv4, isIPv6 } from 'node:net'
import { Ajv2020 } from 'ajv/dist/2020.js'

/** A schema, as far as it is looked at here. */
interface Schema {
  readonly $ref?: string
  readonly type?: string
  readonly required?: readonly string[]
  readonly properties?: Readonly<Record<string, Schema>>
}

interface Parameter {
  readonly $ref?: string
  readonly name: string
  readonly in: 'query' | 'header'
  readonly required?: boolean
  readonly schema: Schema
}

interface Response {
  readonly description: string
  readonly headers?: Readonly<Record<string, { readonly required?: boolean; readonly schema: Schema }>>
  readonly content?: Readonly<Record<string, { readonly schema: Schema }>>
}

/** An operation of the document. */
export interface Operation {
  readonly operationId: string
  readonly httpMethod: string
  readonly path: string
  readonly security: readonly Readonly<Record<string, readonly []>>[]
  readonly parameters: readonly Parameter[]
  readonly requestBody?: { readonly content: Readonly<Record<string, { readonly schema: Schema }>> }
  readonly responses: Readonly<Record<string, Response>>
}

/** An OpenAPI document, as far as it is looked at here. */
export interface OpenApiDocument {
  readonly openapi: string
  readonly servers: readonly { readonly url: string }[]
  readonly paths: Readonly<Record<string, Readonly<Record<string, Omit<Operation, 'httpMethod' | 'path'>>>>>
  readonly components: {
    readonly schemas: Readonly<Record<string, Schema>>
    readonly parameters: Readonly<Record<string, Parameter>>
    readonly securitySchemes: Readonly<
      Record<string, { readonly type: string; readonly in?: string; readonly name?: string }>
    >
  }
}

/** A request as a client sends it. */
export interface SentRequest {
  /** Without the question mark. */
  readonly query: string
  readonly headers: Headers
  /** The parsed JSON; `undefined` if there is no body. */
  readonly body: unknown
}

/** An answer as a client gets it. */
export interface ReceivedAnswer {
  readonly status: number
  readonly headers: Headers
  /** The parsed JSON, or the text of another type; `undefined` if there is no body. */
  readonly body: unknown
}

/** Says what of requests and answers is not as an OpenAPI document has it. */
export class OpenApiContract {
  readonly operations: readonly Operation[]
  readonly #document: OpenApiDocument
  readonly #ajv = new Ajv2020({ allErrors: true, strict: true, strictTypes: false, formats: { int64: true } })

  constructor(document: OpenApiDocument) {
    this.#document = document
    this.operations = Object.entries(document.paths).flatMap(([path, item]) =>
      Object.entries(item).map(([httpMethod, operation]) => ({
        ...operation,
        parameters: (operation.parameters ?? []).map((parameter) => this.#resolved(parameter)),
        httpMethod: httpMethod.toUpperCase(),
        path,
      })),
    )
    this.#ajv.addFormat('ipv4', isIPv4)
    this.#ajv.addFormat('ipv6', isIPv6)
    for (const [name, schema] of Object.entries(document.components.schemas)) {
      this.#ajv.addSchema(closed(schema), `#/components/schemas/${name}`)
    }
  }

  /** The operation of a call; `undefined` if the document has none. */
  find(httpMethod: string, path: string): Operation | undefined {
    return this.operations.find((operation) => operation.httpMethod === httpMethod && operation.path === path)
  }

  /** A schema by its reference, or itself. */
  resolve(schema: Schema): Schema {
    const name = schema.$ref?.replace('#/components/schemas/', '')
    return name === undefined ? schema : (this.#document.components.schemas[name] as Schema)
  }

  /** What is wrong with a request; empty if it is one of the operation. */
  problemsOfRequest(operation: Operation, { query, headers, body }: SentRequest): string[] {
    const queried = new URLSearchParams(query)
    const schemes = this.#document.components.securitySchemes
    const inUrl = Object.values(schemes).filter((scheme) => scheme.in === 'query')
    const named = [...operation.parameters, ...inUrl].map(({ name }) => name)
    const schema = operation.requestBody?.content['application/json']?.schema
    return [
      ...[...queried.keys()].filter((name) => !named.includes(name)).map((name) => `?${name}= is not a parameter`),
      ...operation.parameters.flatMap((parameter) => {
        const text = (parameter.in === 'query' ? queried.get(parameter.name) : headers.get(parameter.name)) ?? undefined
        if (text === undefined) return parameter.required ? [`${parameter.name} is missing`] : []
        return this.#problems(parameter.schema, parameter.schema.type === 'integer' ? Number(text) : text)
      }),
      ...(isAuthorized(operation, headers, queried, schemes) ? [] : ['no security requirement is met']),
      ...(schema === undefined ? [] : this.#problems(schema, body)),
    ]
  }

  /** What is wrong with an answer; empty if it is one that the operation can have. */
  problemsOfAnswer({ operationId, responses }: Operation, { status, headers, body }: ReceivedAnswer): string[] {
    const response = responses[status]
    if (response === undefined) return [`${operationId} is not said to answer ${status}`]
    const missing = Object.entries(response.headers ?? {})
      .filter(([name, { required }]) => required === true && !headers.has(name))
      .map(([name]) => `the header ${name} is missing`)
    const { content } = response
    if (content === undefined) return body === undefined ? missing : [...missing, `${status} has a body`]
    const type = headers.get('content-type')?.split(';')[0] ?? 'no type'
    const schema = content[type]?.schema
    if (schema === undefined) return [...missing, `${status} has a body of ${type}`]
    return [...missing, ...this.#problems(schema, body), ...unlistedReason(operationId, response, status, body)]
  }

  #resolved(parameter: Parameter): Parameter {
    const name = parameter.$ref?.replace('#/components/parameters/', '')
    return name === undefined ? parameter : (this.#document.components.parameters[name] as Parameter)
  }

  #problems(schema: Schema, value: unknown): string[] {
    const validate = this.#ajv.compile(closed(schema))
    if (validate(value)) return []
    return (validate.errors ?? []).map(
      ({ instancePath, message, params }) => `${instancePath || 'the body'} ${message} ${JSON.stringify(params)}`,
    )
  }
}

/** The reasons that a response names. */
export function reasonsOf({ description }: Pick<Response, 'description'>): string[] {
  return [...description.matchAll(/`([A-Z_]+)`/g)].map(([, reason]) => reason as string)
}

function unlistedReason(operationId: string, response: Response, status: number, body: unknown): string[] {
  const code = status < 400 ? undefined : (body as { code?: string }).code
  return code === undefined || reasonsOf(response).includes(code)
    ? []
    : [`${operationId} is not said to answer ${code} with ${status}`]
}

function isAuthorized(
  { security }: Operation,
  headers: Headers,
  queried: URLSearchParams,
  schemes: OpenApiDocument['components']['securitySchemes'],
): boolean {
  const isSent = (name: string): boolean => {
    const scheme = schemes[name]
    if (scheme?.type === 'http') return headers.has('authorization')
    if (scheme?.in === 'query') return queried.has(scheme.name ?? '')
    return headers.get('cookie')?.includes(`${scheme?.name}=`) === true
  }
  return security.length === 0 || security.some((requirement) => Object.keys(requirement).every(isSent))
}

/** The schema without room for fields that it does not name, so that one that is not documented is noticed. */
function closed<S>(schema: S): S {
  if (Array.isArray(schema)) return schema.map((part) => closed(part)) as S
  if (schema === null || typeof schema !== 'object') return schema
  const parts = Object.fromEntries(Object.entries(schema).map(([key, part]) => [key, closed(part)]))
  const isObject = parts.type === 'object'
  return { ...(isObject ? { additionalProperties: false } : {}), ...parts } as S
}

/** The document with the default paths, as it is in the package. */
export function packagedDocument(): OpenApiDocument {
  return JSON.parse(readFileSync(new URL('../../gen/openapi.json', import.meta.url), 'utf8')) as OpenApiDocument
}
