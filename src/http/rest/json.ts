import {
  create,
  type DescEnum,
  type DescField,
  type DescMessage,
  type JsonObject,
  type JsonValue,
  type MessageInitShape,
  type MessageShape,
} from '@bufbuild/protobuf'
import { bearerToken, headerOf, type RequestContext } from '../../base/request.ts'
import { maxBodyBytes } from '../../limits/limits.ts'
import { inputFromJson, parseJson } from '../../rpc/read-input.ts'
import { descEnumWords } from '../../shared/enum-words.ts'
import { CountersignError, invalidField } from '../../shared/errors.ts'
import { decompressed, encodingOf } from '../../wire/body.ts'
import type { Exchange } from '../exchange.ts'
import { isJson, notJson, refusals } from '../refusals.ts'

/**
 * REST's JSON is that of the protos, except that enum values are in lower case without their prefix ("login"), and
 * times are numbers. Input may also use the spelling of the protos.
 */

/** Reads a request's message. INVALID_REQUEST for other JSON. */
export function inputFromRest<I extends DescMessage>(schema: I, json: JsonValue): MessageShape<I> {
  if (json === null || typeof json !== 'object' || Array.isArray(json)) {
    throw new CountersignError('INVALID_REQUEST', 'The body must be a JSON object')
  }
  return inputFromJson(schema, withProtoEnums(schema, json))
}

/** Writes a response's message. A field with presence that is not set is left out. */
export function restFromOutput<O extends DescMessage>(schema: O, output: MessageInitShape<O>): JsonObject {
  const message: object = create(schema, output)
  const json: JsonObject = {}
  for (const field of schema.fields) {
    const { jsonName, localName, fieldKind, oneof, parent } = field
    if (fieldKind === 'map' || oneof !== undefined) {
      throw new TypeError(`${parent.typeName}.${localName}: REST has no JSON for a map or a oneof`)
    }
    // Defaults of fields that have presence are in the prototype.
    if (!Object.hasOwn(message, localName)) continue
    const value: unknown = Reflect.get(message, localName)
    json[jsonName] = Array.isArray(value) ? value.map((each) => jsonOf(field, each)) : jsonOf(field, value)
  }
  return json
}

/** One value of a field, which can be a list of them. */
function jsonOf({ message, enum: desc }: DescField, value: unknown): JsonValue {
  if (message !== undefined) return restFromOutput(message, value as MessageShape<DescMessage>)
  if (desc !== undefined) return descEnumWords(desc).wordOf(value) ?? (value === 0 ? 'unspecified' : String(value))
  return typeof value === 'bigint' ? Number(value) : (value as JsonValue)
}

function withProtoEnums(schema: DescMessage, json: JsonObject): JsonObject {
  const converted: JsonObject = { ...json }
  for (const field of schema.fields) {
    if (field.fieldKind !== 'enum') continue
    for (const name of [field.jsonName, field.name]) {
      const value = json[name]
      if (typeof value === 'string') converted[name] = protoEnumName(field.name, field.enum, value)
    }
  }
  return converted
}

function protoEnumName(field: string, desc: DescEnum, text: string): string {
  const { words, numberOf } = descEnumWords(desc)
  const known = desc.values.find(({ number, name }) => name === text || number === numberOf(text))
  if (known !== undefined) return known.name
  // Passing the text on would make protobuf ignore it, and the field would be reported as missing.
  throw invalidField(field, `${field}: must be ${words.join(' or ')}`, { allowed: words.join(', ') })
}

/** Reads the JSON of an RPC's message from a request. */
export type ReadJson = (exchange: Exchange) => Promise<JsonValue> | JsonValue

/** Input of a POST: the body, a JSON object. An empty body counts as an empty object. */
export async function jsonBody({ body, headers }: Exchange): Promise<JsonValue> {
  const bytes = await body.read(maxBodyBytes)
  if (bytes.length === 0) return {}
  if (!isJson(headers)) throw notJson()
  if (body.decompressed) return parseJson(bytes)
  const encoding = encodingOf(headers['content-encoding'], refusals)
  return parseJson(await decompressed({ bytes, encoding, refusals }))
}

/** Input of a GET without parameters. */
export function noInput(): JsonValue {
  return {}
}

/** Input of a GET for the caller's session. */
export function sessionQuery(exchange: Exchange): JsonValue {
  return queryOf(exchange)('allowSignedOut') === 'true' ? { allowSignedOut: true } : {}
}

/** Input of a GET for one order. */
export function orderQuery(tokenField: OrderTokenField): ReadJson {
  return (exchange) => orderInput(tokenField, exchange.context, queryOf(exchange))
}

/** The parameters in a request's query, by their names. */
export function queryOf({ query }: Pick<Exchange, 'query'>): (name: string) => string | undefined {
  const parameters = new URLSearchParams(query)
  return (name) => parameters.get(name) ?? undefined
}

/** The tokens of an order that a GET takes. */
export type OrderTokenField = 'claimToken' | 'challengeToken' | 'desktopToken'

/**
 * The order that a GET names: `?orderId=`, and the token as `Authorization: Bearer`. A phone that cannot set headers
 * can send the challenge token in the query, in addition to the wallet that is to sign. The desktop's token can make a
 * session, and the claim token takes the order, so they are never accepted in a URL. A desktop that watches can name
 * the last event that it has.
 */
export function orderInput(
  tokenField: OrderTokenField,
  request: RequestContext,
  queried: (name: string) => string | undefined,
): JsonObject {
  const orderId = queried('orderId') ?? ''
  const bearer = bearerToken(request)
  const lastEventId = headerOf(request, 'last-event-id')
  if (tokenField === 'claimToken') return { orderId, claimToken: bearer ?? '' }
  if (tokenField === 'desktopToken') {
    return { orderId, desktopToken: bearer ?? '', ...(lastEventId ? { afterSequence: lastEventId } : {}) }
  }
  const wallet = walletFields.map((name) => [name, queried(name)] as const).filter(([, value]) => value !== undefined)
  return { orderId, challengeToken: bearer ?? queried('challengeToken') ?? '', ...Object.fromEntries(wallet) }
}

/** Parameters of a challenge that name the wallet that is to sign. */
const walletFields = ['adapterId', 'address', 'chainId'] as const
