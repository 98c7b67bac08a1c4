import {
  create,
  type DescEnum,
  type DescMessage,
  fromJson,
  type JsonObject,
  type JsonValue,
  type MessageInitShape,
  type MessageShape,
} from '@bufbuild/protobuf'
import { type ReflectMessage, reflect } from '@bufbuild/protobuf/reflect'
import { Code, ConnectError } from '@connectrpc/connect'
import { requireValid } from '../rpc/methods.ts'

/**
 * The JSON of REST: that of the protos, but for enum values, which are in lower case without their prefix ("login"), and
 * times, which are numbers. Input takes the protos' own spelling as well.
 */

/** Reads a request's message and checks it against the schema's rules. */
export function messageFromRest(schema: DescMessage, json: JsonValue): MessageShape<DescMessage> {
  if (json === null || typeof json !== 'object' || Array.isArray(json)) {
    throw new ConnectError('The body must be a JSON object', Code.InvalidArgument)
  }
  const spelledOut = withProtoEnums(schema, json)
  let message: MessageShape<DescMessage>
  try {
    message = fromJson(schema, spelledOut, { ignoreUnknownFields: true })
  } catch (cause) {
    throw new ConnectError((cause as Error).message, Code.InvalidArgument, undefined, undefined, cause)
  }
  requireValid(schema, message)
  return message
}

/** Writes a response's message. */
export function restFromMessage<Desc extends DescMessage>(schema: Desc, message: MessageInitShape<Desc>): JsonObject {
  return objectOf(reflect(schema, create(schema, message)))
}

function withProtoEnums(schema: DescMessage, json: JsonObject): JsonObject {
  const converted: JsonObject = { ...json }
  for (const field of schema.fields) {
    if (field.fieldKind !== 'enum') continue
    for (const name of [field.jsonName, field.name]) {
      const value = json[name]
      if (typeof value === 'string') converted[name] = protoEnumName(name, field.enum, value)
    }
  }
  return converted
}

function protoEnumName(field: string, desc: DescEnum, text: string): string {
  const known = desc.values.find(({ number, name }) => name === text || restEnumName(desc, number) === text)
  if (known !== undefined) return known.name
  // Left as it is, it would count as an unknown value, which is ignored, and be called missing.
  const choices = desc.values.filter(({ number }) => number !== 0).map(({ number }) => restEnumName(desc, number))
  throw new ConnectError(`${field}: must be ${choices.join(' or ')}`, Code.InvalidArgument)
}

function restEnumName(desc: DescEnum, number: number): string {
  const name = desc.value[number]?.name ?? String(number)
  return name.slice(desc.sharedPrefix?.length ?? 0).toLowerCase()
}

function objectOf(message: ReflectMessage): JsonObject {
  const json: JsonObject = {}
  for (const field of message.fields) {
    if (field.presence !== implicitPresence && !message.isSet(field)) continue
    if (field.fieldKind === 'list') {
      const list = message.get(field)
      json[field.jsonName] = [...list].map((entry) => jsonOf(entry))
    } else if (field.fieldKind === 'enum') {
      json[field.jsonName] = restEnumName(field.enum, message.get(field) as number)
    } else {
      json[field.jsonName] = jsonOf(message.get(field))
    }
  }
  return json
}

/** google.protobuf.FeatureSet.FieldPresence.IMPLICIT: a field that always has a value. */
const implicitPresence = 2

function jsonOf(value: unknown): JsonValue {
  if (typeof value === 'bigint') return Number(value)
  if (typeof value === 'object' && value !== null && 'fields' in value) return objectOf(value as ReflectMessage)
  return value as JsonValue
}
