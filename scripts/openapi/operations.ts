import type { DescMethod } from '@bufbuild/protobuf'
import type {
  Oas3_1Schema,
  Oas3Header,
  Oas3Operation,
  Oas3Parameter,
  Oas3Response,
  Oas3Responses,
} from '@redocly/openapi-core'
import type { RestEndpoint } from '../../src/http/rest/endpoints.ts'
import { type ErrorReason, reasons } from '../../src/shared/errors.ts'
import { reasonsIn, rpcComment } from '../docs/comments.ts'
import type { ProtoComments } from '../proto-comments.ts'
import { type CallFacts, calls } from './calls.ts'
import type { Prosaist } from './prose.ts'
import { type Schemas, schemaRef } from './schemas.ts'

type Operation = Oas3Operation<Oas3_1Schema>
type Responses = Oas3Responses<Oas3_1Schema>

/** Makes the operations of REST calls. */
export class Operations {
  readonly #comments: ProtoComments
  readonly #prosaist: Prosaist
  readonly #schemas: Schemas

  /** The reasons for which a call can fail are those that the comment of its RPC lists. */
  constructor(comments: ProtoComments, prosaist: Prosaist, schemas: Schemas) {
    this.#comments = comments
    this.#prosaist = prosaist
    this.#schemas = schemas
  }

  /** The operation of an endpoint. Throws if {@link calls} does not have it. */
  of({ httpMethod, rpc }: RestEndpoint): Operation {
    const facts = factsOf(rpc)
    const { summary, details } = this.#prosaist.of(rpc)
    const hasBody = httpMethod === 'POST' && rpc.input.fields.length > 0
    const operation: Operation = {
      operationId: rpc.localName,
      tags: [tagOf(rpc.parent.name)],
      summary,
      description: rpc.methodKind === 'server_streaming' ? `${details}\n\n${aboutEvents}` : details,
      security: [...facts.security],
      parameters: [...this.#parameters(rpc), { $ref: '#/components/parameters/origin' }],
      responses: {
        ...(rpc.methodKind === 'server_streaming' ? this.#events(rpc) : { '200': this.#success(rpc, facts) }),
        ...failures([
          ...reasonsOfAny('call'),
          ...(httpMethod === 'POST' || rpc.input.fields.length > 0 ? reasonsOfAny('input') : []),
          ...(httpMethod === 'POST' ? reasonsOfAny('body') : []),
          ...reasonsIn(rpcComment(rpc, this.#comments).errors),
        ]),
      },
    }
    if (hasBody) {
      const schema = this.#schemas.message(rpc.input, 'request')
      operation.requestBody = { required: true, content: { 'application/json': { schema } } }
    }
    return operation
  }

  #success(rpc: DescMethod, { authToken, cookie }: CallFacts): Oas3Response<Oas3_1Schema> {
    const headers: Record<string, Oas3Header<Oas3_1Schema>> = {}
    if (authToken !== undefined) {
      headers['Set-Auth-Token'] = {
        required: authToken === 'always',
        schema: { type: 'string' },
        description: `The session token, as in the body${authToken === 'always' ? '' : ', if the order is a login'}. Secret.`,
      }
    }
    if (cookie !== undefined) headers['Set-Cookie'] = { schema: { type: 'string' }, description: cookie }
    return {
      description: this.#prosaist.of(rpc.output).whole,
      ...(Object.keys(headers).length === 0 ? {} : { headers }),
      content: { 'application/json': { schema: this.#schemas.message(rpc.output, 'response') } },
    }
  }

  #events(rpc: DescMethod): Responses {
    const event = this.#schemas.message(rpc.output, 'response')
    const events = this.#schemas.add('WatchOrderEvents', {
      type: 'object',
      description: 'The answer of a long poll.',
      required: ['events'],
      properties: {
        events: {
          type: 'array',
          items: event,
          description: 'Transitions, oldest first. Empty if none happened within the time.',
        },
      },
    })
    return {
      '200': {
        description: 'The events: a stream of server-sent events, or the answer of a long poll.',
        content: {
          'text/event-stream': {
            schema: {
              type: 'string',
              description: 'Server-sent events. The data of each is a WatchOrderResponse in JSON.',
            },
          },
          'application/json': { schema: events },
        },
      },
      '204': {
        description:
          'The order has ended, and the client has seen its last event. Never for a long poll. An EventSource stops.',
      },
    }
  }

  /** What a GET has in its query and its headers, beside the token. */
  #parameters(rpc: DescMethod): Oas3Parameter<Oas3_1Schema>[] {
    if (rpc.input.fields.length === 0) return []
    const ofChallenge = ['order_id', 'adapter_id', 'address', 'chain_id']
    switch (rpc.localName) {
      case 'getOrderChallenge':
        return ofChallenge.map((name) => this.#queryField(rpc, name))
      case 'previewOrder':
        return [this.#queryField(rpc, 'order_id')]
      case 'watchOrder':
        return [this.#queryField(rpc, 'order_id'), ...watchParameters]
      case 'getCurrentSession':
        return [this.#queryField(rpc, 'allow_signed_out')]
      default:
        return []
    }
  }

  #queryField({ input }: DescMethod, name: string): Oas3Parameter<Oas3_1Schema> {
    const desc = input.fields.find((field) => field.name === name)
    if (desc === undefined) throw new Error(`${input.name} has no field ${name}`)
    const { description = '', ...schema } = this.#schemas.field(desc, 'request')
    return { name: desc.jsonName, in: 'query', required: name === 'order_id', description, schema }
  }
}

/** The name of a service's tag. */
export function tagOf(service: string): string {
  return service.replace(/Service$/, '')
}

const allReasons = Object.keys(reasons) as ErrorReason[]

/** The reasons of any such call. Comments of the protos do not list them. */
function reasonsOfAny(kind: 'call' | 'input' | 'body'): ErrorReason[] {
  return allReasons.filter((reason) => reasons[reason].any === kind)
}

/** The answers to calls that fail for these reasons, by status. */
export function failures(of: Iterable<ErrorReason>): Responses {
  const known = new Set(of)
  // In the order of the list of reasons, whatever the order here is.
  const listed = allReasons.filter((reason) => known.has(reason))
  const byStatus = Map.groupBy(listed, (reason) => reasons[reason].http)
  return Object.fromEntries([...byStatus].map(([status, some]) => [String(status), failure(status, some)]))
}

function failure(status: number, some: readonly ErrorReason[]): Oas3Response<Oas3_1Schema> {
  return {
    description: some.map((reason) => `\`${reason}\``).join(', '),
    ...(status === 429 || status === 503 ? { headers: { 'Retry-After': retryAfter } } : {}),
    content: { 'application/json': { schema: schemaRef('Error') } },
  }
}

const retryAfter: Oas3Header<Oas3_1Schema> = {
  description: 'Time in seconds after which a retry can succeed. Absent if waiting does not help.',
  schema: { type: 'integer', minimum: 0 },
}

const aboutEvents =
  `A request whose \`Accept\` header names \`application/json\`, and not \`text/event-stream\`, is a long poll: it is
answered with the events that there are, or else with the first that comes within \`wait\` seconds. Every other request
gets server-sent events. A transition is a message whose id is its sequence; a heartbeat is an event named \`heartbeat\`;
an event named \`reconnect\` is the last of a stream that ends before the order does.`.replaceAll('\n', ' ')

const sequence: Oas3_1Schema = { type: 'integer', minimum: 0, maximum: 2 ** 32 - 1 }

const watchParameters: readonly Oas3Parameter<Oas3_1Schema>[] = [
  {
    name: 'after',
    in: 'query',
    description: 'Of a long poll: the sequence of the last event that the client has seen.',
    schema: sequence,
  },
  {
    name: 'wait',
    in: 'query',
    description: 'Of a long poll: the time in seconds to wait for an event.',
    schema: { type: 'integer', minimum: 0, maximum: 25, default: 25 },
  },
  {
    name: 'Last-Event-ID',
    in: 'header',
    description: 'The sequence of the last event that the client has seen. An EventSource sends it when it reconnects.',
    schema: sequence,
  },
]

function factsOf(rpc: DescMethod): CallFacts {
  const facts = (calls as Readonly<Record<string, CallFacts>>)[rpc.localName]
  if (facts === undefined) throw new Error(`scripts/openapi/calls.ts does not say what ${rpc.name} is authorized by`)
  return facts
}
