import {
  create,
  type DescEnum,
  type DescMessage,
  type JsonObject,
  type JsonValue,
  type MessageInitShape,
  type MessageShape,
} from '@bufbuild/protobuf'
import { type ReflectMessage, reflect } from '@bufbuild/protobuf/reflect'
import { descEnumWords } from '../../enum-words.ts'
import { CountersignError } from '../../errors.ts'
import { inputFromJson } from '../../rpc/read-input.ts'

/**
 * REST's JSON: that of the protos, except that enum values are in lower case without their prefix ("login"), and times are
 * numbers. Input may use the protos' own spelling too.
 */

/** Reads a request's message. INVALID_REQUEST if the JSON is not one. */
export function inputFromRest<I extends DescMessage>(schema: I, json: JsonValue): MessageShape<I> {
  if (json === null || typeof json !== 'object' || Array.isArray(json)) {
    throw new CountersignError('INVALID_REQUEST', 'The body must be a JSON object')
  }
  return inputFromJson(schema, withProtoEnums(schema, json))
}

/** Writes a response's message. */
export function restFromOutput<O extends DescMessage>(schema: O, output: MessageInitShape<O>): JsonObject {
  return objectOf(reflect(schema, create(schema, output)))
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
  // Left as it is, it would count as an unknown value, which is ignored, and be called missing.
  throw new CountersignError('INVALID_REQUEST', `${field}: must be ${words.join(' or ')}`, {
    metadata: { field, allowed: words.join(', ') },
  })
}

function objectOf(message: ReflectMessage): JsonObject {
  const json: JsonObject = {}
  for (const field of message.fields) {
    if (field.presence !== implicitPresence && !message.isSet(field)) continue
    if (field.fieldKind === 'list') {
      const list = message.get(field)
      json[field.jsonName] = [...list].map((entry) => jsonOf(entry))
    } else if (field.fieldKind === 'enum') {
      json[field.jsonName] = enumJson(field.enum, message.get(field))
    } else {
      json[field.jsonName] = jsonOf(message.get(field))
    }
  }
  return json
}

/** google.protobuf.FeatureSet.FieldPresence.IMPLICIT: a field that always has a value. */
export const implicitPresence = 2

function enumJson(desc: DescEnum, value: unknown): string {
  return descEnumWords(desc).wordOf(value) ?? (value === 0 ? 'unspecified' : String(value))
}

function jsonOf(value: unknown): JsonValue {
  if (typeof value === 'bigint') return Number(value)
  if (typeof value === 'object' && value !== null && 'fields' in value) return objectOf(value as ReflectMessage)
  return value as JsonValue
}
