import type { DescEnum, DescField, DescMessage, DescMethod, DescService } from '@bufbuild/protobuf'
import { ScalarType } from '@bufbuild/protobuf'
import { usedTypes } from '@bufbuild/protobuf/reflect'
import { OrderKindSchema, OrderStatusSchema } from '../../gen/server/countersign/v1/order_service_pb.ts'
import { NoncePurposeSchema } from '../../gen/server/countersign/v1/sign_in_service_pb.ts'
import type { ProtoComments } from '../proto-comments.ts'
import { markdownOf, paragraphsOf, rpcComment } from './comments.ts'
import { boundsOf, hasNoPresence } from './field-rules.ts'
import { code, markdownTable, toHeading } from './markdown.ts'
import { endpoints, rpcs, services } from './services.ts'

const page = 'protocol.md'

/** The parts of docs/protocol.md. */
export function protocolParts(comments: ProtoComments): Readonly<Record<string, string>> {
  const reference = new Reference(comments)
  return { contents: reference.contents(), reference: reference.sections() }
}

/** Whether a message is read by the service or written by it. */
type Direction = 'request' | 'response'

class Reference {
  readonly #comments: ProtoComments

  constructor(comments: ProtoComments) {
    this.#comments = comments
  }

  contents(): string {
    const ofServices = services.map((service) => {
      const calls = service.methods.map((rpc) => [toHeading(rpc.name), restAddress(rpc)].join(' ').trim())
      return `- ${toHeading(service.name)}: ${calls.join(', ')}`
    })
    const messages = sharedMessages().map(({ name }) => toHeading(name))
    const words = enums().map(({ name }) => toHeading(name))
    return [
      ...ofServices,
      `- ${toHeading('Messages')}: ${messages.join(', ')}`,
      `- ${toHeading('Enums')}: ${words.join(', ')}\n`,
    ].join('\n')
  }

  sections(): string {
    return [
      ...services.flatMap((service) => this.#service(service)),
      '## Messages\n',
      'Messages that are fields of others.\n',
      ...sharedMessages().flatMap((message) => this.#message(message)),
      '## Enums\n',
      ...enums().flatMap((desc) => this.#enum(desc)),
    ].join('\n')
  }

  #service(service: DescService): string[] {
    return [`## ${service.name}\n`, ...this.#paragraphs(service), ...service.methods.flatMap((rpc) => this.#rpc(rpc))]
  }

  #rpc(rpc: DescMethod): string[] {
    const { paragraphs, errors } = rpcComment(rpc, this.#comments)
    const rest = restAddress(rpc)
    return [
      `### ${rpc.name}\n`,
      `${rest === '' ? 'No REST address.' : `REST: ${rest}.`}\n`,
      ...paragraphs.map((paragraph) => `${markdownOf(paragraph, page, rpc.name)}\n`),
      `**Errors**: ${markdownOf(errors, page)}\n`,
      `**Request**${this.#body(rpc.input, 'request')}`,
      `**Response**${rpc.methodKind === 'server_streaming' ? ', each message of the stream' : ''}${this.#body(rpc.output, 'response')}`,
    ]
  }

  /** The fields of a call's message. `ok` has no row: the page says once that it is always true. */
  #body(message: DescMessage, direction: Direction): string {
    const fields = message.fields.filter(({ name }) => name !== 'ok')
    if (fields.length === 0) return `: ${message.fields.length === 0 ? 'no fields' : code('ok')}.\n`
    const [only, second] = fields
    if (only !== undefined && second === undefined) {
      const [name, type, meaning] = this.#field(only, direction)
      return `: ${name} (${type}): ${meaning}\n`
    }
    return `\n\n${this.#table(fields, direction)}`
  }

  #message(message: DescMessage): string[] {
    return [`### ${message.name}\n`, this.#fields(message, isOfRequests(message) ? 'request' : 'response')]
  }

  #fields(message: DescMessage, direction: Direction): string {
    const about = this.#paragraphs(message).join('\n')
    return message.fields.length === 0 ? about : `${about}\n${this.#table(message.fields, direction)}`
  }

  #table(fields: readonly DescField[], direction: Direction): string {
    const rows = fields.map((field) => this.#field(field, direction))
    return markdownTable(['field', 'type', 'meaning'], rows)
  }

  #field(field: DescField, direction: Direction): string[] {
    // The page says both once: what a type without "optional" means, and the unit of all times.
    const meaning = paragraphsOf(this.#comments.of(field))
      .join(' ')
      .replace(/ (Required|Optional)\.(?=\s|$)/, '')
      .replace(', epoch milliseconds', '')
    const { required, text } = boundsOf(field)
    const type =
      direction === 'response'
        ? [typeOf(field), isAlwaysSet(field, this.#comments) ? '' : 'optional']
        : [typeOf(field), required ? 'required' : hasNoPresence(field) ? '' : 'optional', text]
    return [code(field.name), type.filter((part) => part !== '').join(', '), markdownOf(meaning, page)]
  }

  #enum(desc: DescEnum): string[] {
    const values = desc.values.map((value) => {
      return `- ${code(value.name)}: ${markdownOf(paragraphsOf(this.#comments.of(value)).join(' '), page)}\n`
    })
    return [`### ${desc.name}\n`, ...this.#paragraphs(desc), values.join('')]
  }

  #paragraphs(desc: DescService | DescMessage | DescEnum): string[] {
    return paragraphsOf(this.#comments.of(desc)).map((paragraph) => `${markdownOf(paragraph, page)}\n`)
  }
}

function restAddress(rpc: DescMethod): string {
  const endpoint = endpoints.find((each) => each.rpc === rpc)
  return endpoint === undefined ? '' : code(`${endpoint.httpMethod} ${endpoint.path}`)
}

/** Whether a field of a response always has a value. A message is absent only if the field's comment says when. */
export function isAlwaysSet(field: DescField, comments: ProtoComments): boolean {
  return field.fieldKind === 'message' ? !/\bAbsent\b/.test(comments.of(field)) : hasNoPresence(field)
}

function typeOf(field: DescField): string {
  switch (field.fieldKind) {
    case 'scalar':
      return ScalarType[field.scalar].toLowerCase()
    case 'enum':
      return toHeading(field.enum.name)
    case 'message':
      return toHeading(field.message.name)
    case 'list':
      return `list of ${field.listKind === 'message' ? toHeading(field.message.name) : 'strings'}`
    case 'map':
      throw new Error(
        `${field} is a map, which docs/protocol.md has no words for: add them to scripts/docs/protocol.ts`,
      )
  }
}

/** Messages that are fields of others, in the order in which the calls need them. */
function sharedMessages(): DescMessage[] {
  return [...new Set(rpcs.flatMap(({ input, output }) => [...fieldMessages(input), ...fieldMessages(output)]))]
}

function isOfRequests(message: DescMessage): boolean {
  return rpcs.some(({ input }) => fieldMessages(input).includes(message))
}

function fieldMessages(message: DescMessage): DescMessage[] {
  return [...usedTypes(message)].filter((type) => type.kind === 'message')
}

function enums(): DescEnum[] {
  return [NoncePurposeSchema, OrderKindSchema, OrderStatusSchema]
}
