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
import { inputFromJson } from '../../rpc/read-input.ts'
import { descEnumWords } from '../../shared/enum-words.ts'
import { CountersignError } from '../../shared/errors.ts'

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
  return writerOf(schema)(output as Values)
}

function withProtoEnums(schema: DescMessage, json: JsonObject): JsonObject {
  const enums = enumFieldsOf(schema)
  if (enums.length === 0) return json
  const converted: JsonObject = { ...json }
  for (const field of enums) {
    for (const name of [field.jsonName, field.name]) {
      const value = json[name]
      if (typeof value === 'string') converted[name] = protoEnumName(field.name, field.enum, value)
    }
  }
  return converted
}

const enumFields = new WeakMap<DescMessage, readonly EnumField[]>()

function enumFieldsOf(schema: DescMessage): readonly EnumField[] {
  const fields =
    enumFields.get(schema) ?? schema.fields.filter((field): field is EnumField => field.fieldKind === 'enum')
  enumFields.set(schema, fields)
  return fields
}

type EnumField = DescField & { readonly fieldKind: 'enum' }

function protoEnumName(field: string, desc: DescEnum, text: string): string {
  const { words, numberOf } = descEnumWords(desc)
  const known = desc.values.find(({ number, name }) => name === text || number === numberOf(text))
  if (known !== undefined) return known.name
  // Left as it is, it would count as an unknown value, which is ignored, and be called missing.
  throw new CountersignError('INVALID_REQUEST', `${field}: must be ${words.join(' or ')}`, {
    metadata: { field, allowed: words.join(', ') },
  })
}

/** google.protobuf.FeatureSet.FieldPresence.IMPLICIT: a field that always has a value. */
export const implicitPresence = 2

function enumJson(desc: DescEnum, value: unknown): string {
  return descEnumWords(desc).wordOf(value) ?? (value === 0 ? 'unspecified' : String(value))
}

/** Fields of a message, or of what one is made from, by their names in TypeScript. */
type Values = Readonly<Record<string, unknown>>

/** How a field is written. */
interface FieldWriter {
  readonly jsonName: string
  readonly localName: string
  /** Its value in a message that does not set it; `undefined` if it is left out then. */
  readonly unset: unknown
  readonly write: (value: unknown) => JsonValue
}

const writers = new WeakMap<DescMessage, (values: Values) => JsonObject>()

/** What writes a message. Made once: to ask the schema again for each message takes longer than to write it. */
function writerOf(schema: DescMessage): (values: Values) => JsonObject {
  const known = writers.get(schema)
  if (known !== undefined) return known
  const empty: Values = create(schema)
  const fields = schema.fields.map((field) => fieldWriter(field, empty))
  const writer = (values: Values): JsonObject => {
    const json: JsonObject = {}
    for (const { jsonName, localName, unset, write } of fields) {
      const value = values[localName] ?? unset
      if (value !== undefined) json[jsonName] = write(value)
    }
    return json
  }
  writers.set(schema, writer)
  return writer
}

function fieldWriter(field: DescField, empty: Values): FieldWriter {
  const { jsonName, localName, oneof, parent } = field
  if (field.fieldKind === 'map' || oneof !== undefined) {
    throw new TypeError(`${parent.typeName}.${localName}: REST has no JSON for a map or a oneof`)
  }
  const single = singleWriter(field)
  const isList = field.fieldKind === 'list'
  return {
    jsonName,
    localName,
    unset: isList || field.presence === implicitPresence ? empty[localName] : undefined,
    // A new list each time: whoever is given the answer may change it.
    write: isList ? (list) => (list as unknown[]).map(single) : single,
  }
}

/** Writes one value of a field, which can be a list of them. */
function singleWriter({ message, enum: desc }: DescField): (value: unknown) => JsonValue {
  if (message !== undefined) return (value) => writerOf(message)(value as Values)
  if (desc !== undefined) return (value) => enumJson(desc, value)
  return (value) => (typeof value === 'bigint' ? Number(value) : (value as JsonValue))
}
