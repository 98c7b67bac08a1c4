import { type DescField, getOption, hasOption, type JsonValue } from '@bufbuild/protobuf'
import { reflect } from '@bufbuild/protobuf/reflect'
import {
  EnumRulesSchema,
  field as fieldRules,
  StringRulesSchema,
  UInt32RulesSchema,
} from '@bufbuild/protovalidate/gen/buf/validate/validate_pb.js'
import type { Oas3_1Schema } from '@redocly/openapi-core'

/** What the validation rules of a field are in JSON Schema. */
export interface MappedRules {
  /** Whether the rules refuse the field's absence by name. */
  readonly required: boolean
  readonly keywords: Oas3_1Schema
}

type Mapping = (value: JsonValue) => Oas3_1Schema

/** JSON Schema counts characters as the rules do: code points. A text has at most as many of them as it has bytes. */
const stringRules: Readonly<Record<string, Mapping>> = {
  min_len: (value) => ({ minLength: Number(value) }),
  max_len: (value) => ({ maxLength: Number(value) }),
  max_bytes: (value) => ({ maxLength: Number(value) }),
  pattern: (value) => ({ pattern: String(value) }),
  ip: () => ({ anyOf: [{ format: 'ipv4' }, { format: 'ipv6' }] }),
  not_contains: (value) => ({ not: { pattern: String(value).replace(/[\\^$.*+?()[\]{}|/]/g, '\\$&') } }),
}

const enumRules: Readonly<Record<string, Mapping>> = {
  // The words of the enum's schema are all there are.
  defined_only: () => ({}),
}

const numberRules: Readonly<Record<string, Mapping>> = {
  gte: (value) => ({ minimum: Number(value) }),
  lte: (value) => ({ maximum: Number(value) }),
}

/** The validation rules of a field as JSON Schema has them. Throws if there is one that it does not know. */
export function mappedRules(desc: DescField): MappedRules {
  if (!hasOption(desc, fieldRules)) return { required: false, keywords: {} }
  const { required, type, cel, celExpression } = getOption(desc, fieldRules)
  if (cel.length + celExpression.length > 0) throw new Error(`${desc} has rules in CEL, which JSON Schema cannot say`)
  switch (type.case) {
    case undefined:
      return { required, keywords: {} }
    case 'string':
      return {
        required,
        keywords: wholeBranches(keywordsOf(desc, reflect(StringRulesSchema, type.value), stringRules)),
      }
    case 'uint32':
      return { required, keywords: keywordsOf(desc, reflect(UInt32RulesSchema, type.value), numberRules) }
    case 'enum':
      return { required, keywords: keywordsOf(desc, reflect(EnumRulesSchema, type.value), enumRules) }
    default:
      throw new Error(`${desc} has rules for ${type.case}, which scripts/openapi/rules.ts does not map`)
  }
}

/**
 * Rules of a text in which each branch says all by itself: generators such as orval make a type of each, and then put
 * what stands beside them, such as the length, where their union cannot have it.
 */
function wholeBranches(keywords: Oas3_1Schema): Oas3_1Schema {
  const { anyOf, not, ...others } = keywords
  if (anyOf === undefined) return keywords
  const branches = anyOf.map((each) => ({ type: 'string' as const, ...each, ...others }))
  return { ...(not === undefined ? {} : { not }), anyOf: branches }
}

function keywordsOf(
  desc: DescField,
  rules: ReturnType<typeof reflect>,
  mappings: Readonly<Record<string, Mapping>>,
): Oas3_1Schema {
  const keywords = rules.fields
    .filter((rule) => rules.isSet(rule))
    .map((rule) => {
      const mapping = mappings[rule.name]
      if (mapping === undefined)
        throw new Error(`${desc} has the rule ${rule.name}, which scripts/openapi/rules.ts does not map`)
      return mapping(rules.get(rule) as JsonValue)
    })
  return Object.assign({}, ...keywords) as Oas3_1Schema
}
