import type { DescEnum, DescEnumValue, DescField, DescMessage, DescMethod, DescService } from '@bufbuild/protobuf'
import { ScalarType } from '@bufbuild/protobuf'
import { usedTypes } from '@bufbuild/protobuf/reflect'
import { OrderKindSchema, OrderStatusSchema } from '../../gen/server/countersign/v1/order_service_pb.ts'
import { NoncePurposeSchema } from '../../gen/server/countersign/v1/sign_in_service_pb.ts'
import { descEnumWords } from '../../src/shared/enum-words.ts'
import type { ProtoComments } from '../proto-comments.ts'
import { markdownOf, paragraphsOf, rpcComment, summaryOf } from './comments.ts'
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
      const rows = service.methods.map((rpc) => [
        toHeading(rpc.name),
        restAddress(rpc) || '–',
        summaryOf(rpc, page, this.#comments),
      ])
      return `**${toHeading(service.name)}**\n\n${markdownTable(['call', 'REST, under `/api/auth`', 'what it does'], rows)}`
    })
    const messages = sharedMessages().map(({ name }) => toHeading(name))
    const words = enums().map(({ name }) => toHeading(name))
    return [
      ...ofServices,
      `${toHeading('Messages')}: ${messages.join(', ')}\n`,
      `${toHeading('Enums')}: ${words.join(', ')}\n`,
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

  /** The fields of a call's message. The first sentence of its comment says of what call it is, which stands above. */
  #body(message: DescMessage, direction: Direction): string {
    if (message.fields.length === 0) return ': no fields.\n'
    const [first = '', ...others] = this.#paragraphs(message)
    const rest = first.replace(/^.*?\.(\s|$)/, '').trim()
    const about = [...(rest === '' ? [] : [`${rest}\n`]), ...others]
    return `${about.length === 0 ? '' : `: ${about.map((part) => part.trim()).join('\n\n')}`}\n\n${this.#table(message, direction)}`
  }

  #message(message: DescMessage): string[] {
    return [`### ${message.name}\n`, this.#fields(message, isOfRequests(message) ? 'request' : 'response')]
  }

  #fields(message: DescMessage, direction: Direction): string {
    const about = this.#paragraphs(message).join('\n')
    return message.fields.length === 0 ? about : `${about}\n${this.#table(message, direction)}`
  }

  #table(message: DescMessage, direction: Direction): string {
    const rows = message.fields.map((field) => this.#field(field, direction))
    const bounds = direction === 'request' ? ['bounds'] : []
    return markdownTable(['field', 'type', 'presence', ...bounds, 'meaning'], rows)
  }

  #field(field: DescField, direction: Direction): string[] {
    // The page says both once: the column "presence", and the unit of all times.
    const meaning = paragraphsOf(this.#comments.of(field))
      .join(' ')
      .replace(/ (Required|Optional)\.(?=\s|$)/, '')
      .replace(', epoch milliseconds', '')
    const { required, text } = boundsOf(field)
    const presence =
      direction === 'request'
        ? requestPresence(field, required)
        : isAlwaysSet(field, this.#comments)
          ? 'always'
          : 'optional'
    const bounds = direction === 'request' ? [text] : []
    return [code(field.name), typeOf(field), presence, ...bounds, markdownOf(meaning, page)]
  }

  #enum(desc: DescEnum): string[] {
    const rows = desc.values.map((value) => [
      code(value.name),
      String(value.number),
      wordOf(value),
      markdownOf(paragraphsOf(this.#comments.of(value)).join(' '), page),
    ])
    return [
      `### ${desc.name}\n`,
      ...this.#paragraphs(desc),
      markdownTable(['value', 'number', 'REST', 'meaning'], rows),
    ]
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

/** How REST writes a value. Unspecified is not a word. */
function wordOf({ parent, number }: DescEnumValue): string {
  const word = descEnumWords(parent).wordOf(number)
  return word === undefined ? '–' : code(word)
}

function requestPresence(field: DescField, required: boolean): string {
  if (required) return 'required'
  return hasNoPresence(field) ? `absent: ${emptyOf(field)}` : 'optional'
}

function emptyOf(field: DescField): string {
  switch (field.fieldKind) {
    case 'enum':
      return 'unspecified'
    case 'scalar':
      return field.scalar === ScalarType.STRING ? 'empty' : field.scalar === ScalarType.BOOL ? 'false' : '0'
    default:
      return 'empty'
  }
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
      return `list of ${field.listKind === 'message' ? toHeading(field.message.name) : code('values')}`
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
