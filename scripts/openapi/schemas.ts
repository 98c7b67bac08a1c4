import { type DescEnum, type DescField, type DescMessage, ScalarType } from '@bufbuild/protobuf'
import { FeatureSet_FieldPresence } from '@bufbuild/protobuf/wkt'
import type { Oas3_1Schema } from '@redocly/openapi-core'
import { descEnumWords } from '../../src/shared/enum-words.ts'
import type { Prosaist } from './prose.ts'
import { mappedRules } from './rules.ts'

/** A schema of a component. */
export interface Reference {
  readonly $ref: string
}

/** Refers to one of the document's schemas. */
export function schemaRef(name: string): Reference {
  return { $ref: `#/components/schemas/${name}` }
}

/** Which of REST's two directions a message goes. They differ in what has to be present. */
type Direction = 'request' | 'response'

/** Text fields that a request can leave out although they have no presence of their own: the empty text is allowed. */
const mayBeEmpty: ReadonlySet<string> = new Set(['public_key_hex'])

/** Messages in responses that are not always there. All others are. */
const sometimesAbsent: ReadonlySet<string> = new Set([
  'countersign.v1.FinalizeOrderResponse.session',
  'countersign.v1.FinalizeOrderResponse.proof_artifact',
  'countersign.v1.FinalizeOrderResponse.wallet',
  'countersign.v1.IssueNonceResponse.form',
])

/** The schemas of messages and enums as REST writes them, each made once. */
export class Schemas {
  readonly #prosaist: Prosaist
  readonly #components = new Map<string, Oas3_1Schema>()

  constructor(prosaist: Prosaist) {
    this.#prosaist = prosaist
  }

  /** All that were referred to, by name. */
  get components(): Record<string, Oas3_1Schema> {
    return Object.fromEntries([...this.#components].sort(([a], [b]) => (a < b ? -1 : 1)))
  }

  /** Adds a schema that no message has. */
  add(name: string, schema: Oas3_1Schema): Reference {
    if (this.#components.has(name)) throw new Error(`two schemas have the name ${name}`)
    this.#components.set(name, schema)
    return schemaRef(name)
  }

  /** A message, with all that it contains. */
  message(desc: DescMessage, direction: Direction): Reference {
    if (!this.#components.has(desc.name)) {
      // First, so that what it contains stands behind it.
      const schema: Oas3_1Schema = { type: 'object', description: this.#prosaist.of(desc).whole }
      this.#components.set(desc.name, schema)
      const required = desc.fields.filter((field) => isRequired(field, direction)).map(({ jsonName }) => jsonName)
      if (required.length > 0) schema.required = required
      if (desc.fields.length > 0) {
        schema.properties = Object.fromEntries(
          desc.fields.map((field) => [field.jsonName, this.field(field, direction)]),
        )
      }
    }
    return schemaRef(desc.name)
  }

  /** One field's value. */
  field(desc: DescField, direction: Direction): Oas3_1Schema {
    const { keywords } = mappedRules(desc)
    return { ...this.#value(desc, direction), description: this.#prosaist.of(desc).whole, ...keywords }
  }

  #value(desc: DescField, direction: Direction): Oas3_1Schema {
    switch (desc.fieldKind) {
      case 'scalar':
        // A failure is an error, so whoever reads an answer need not look.
        return direction === 'response' && desc.name === 'ok' ? { type: 'boolean', const: true } : scalar(desc)
      case 'enum':
        return this.#enum(desc.enum)
      case 'message':
        return this.message(desc.message, direction)
      case 'list':
        if (desc.listKind === 'scalar' && desc.scalar === ScalarType.STRING) {
          return { type: 'array', items: { type: 'string' } }
        }
        if (desc.listKind !== 'message') throw new Error(`${desc} is a list of a kind that REST has no schema for yet`)
        return { type: 'array', items: this.message(desc.message, direction) }
      case 'map':
        throw new Error(`${desc} is a map, which REST has no schema for yet`)
    }
  }

  #enum(desc: DescEnum): Reference {
    if (!this.#components.has(desc.name)) {
      const { words, wordOf } = descEnumWords(desc)
      const lines = desc.values
        .filter(({ number }) => wordOf(number) !== undefined)
        .map((value) => `- \`${wordOf(value.number)}\`: ${this.#prosaist.of(value).whole}`)
      const description = `${this.#prosaist.of(desc).whole}\n\n${lines.join('\n')}`
      this.#components.set(desc.name, { type: 'string', description, enum: [...words] })
    }
    return schemaRef(desc.name)
  }
}

/** Whether a request without the field is refused, or whether every response has it. */
function isRequired(desc: DescField, direction: Direction): boolean {
  const hasPresence = desc.presence !== FeatureSet_FieldPresence.IMPLICIT
  if (direction === 'response') {
    return desc.fieldKind === 'message' ? !sometimesAbsent.has(fullName(desc)) : !hasPresence
  }
  if (mappedRules(desc).required) return true
  return desc.fieldKind === 'scalar' && !hasPresence && !mayBeEmpty.has(desc.name)
}

function fullName({ parent, name }: DescField): string {
  return `${parent.typeName}.${name}`
}

function scalar(desc: DescField & { readonly fieldKind: 'scalar' }): Oas3_1Schema {
  switch (desc.scalar) {
    case ScalarType.STRING:
      return { type: 'string' }
    case ScalarType.BOOL:
      return { type: 'boolean' }
    case ScalarType.UINT32:
      return { type: 'integer', minimum: 0, maximum: 2 ** 32 - 1 }
    case ScalarType.INT64:
      return { type: 'integer', format: 'int64' }
    default:
      throw new Error(`${desc} has a type that REST has no schema for yet: ${ScalarType[desc.scalar]}`)
  }
}
