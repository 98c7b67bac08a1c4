import type { DescField } from '@bufbuild/protobuf'
import type { Oas3_1Schema } from '@redocly/openapi-core'
import { rulesOf } from '../../src/rpc/rules.ts'

/** What the validation rules of a field are in JSON Schema. */
export interface MappedRules {
  /** Whether the rules refuse the field's absence by name. */
  readonly required: boolean
  readonly keywords: Oas3_1Schema
}

type Mapping = (value: string | number) => Oas3_1Schema

/** JSON Schema counts characters as the rules do: code points. A text has at most as many of them as it has bytes. */
const mappings: Readonly<Record<string, Mapping>> = {
  min_len: (value) => ({ minLength: Number(value) }),
  max_len: (value) => ({ maxLength: Number(value) }),
  max_bytes: (value) => ({ maxLength: Number(value) }),
  pattern: (value) => ({ pattern: String(value) }),
  ip: () => ({ anyOf: [{ format: 'ipv4' }, { format: 'ipv6' }] }),
  not_contains: (value) => ({ not: { pattern: String(value).replace(/[\\^$.*+?()[\]{}|/]/g, '\\$&') } }),
  // The words of the enum's schema are all there are.
  defined_only: () => ({}),
  gte: (value) => ({ minimum: Number(value) }),
  lte: (value) => ({ maximum: Number(value) }),
}

/** The validation rules of a field as JSON Schema has them. Throws if there is one that it cannot say. */
export function mappedRules(desc: DescField): MappedRules {
  const { required, rules } = rulesOf(desc)
  const keywords = [...rules].map(([name, value]) => {
    const mapping = mappings[name]
    if (mapping === undefined) {
      throw new Error(`${desc} has the rule ${name}, which scripts/openapi/rules.ts does not map`)
    }
    return mapping(value)
  })
  return { required, keywords: wholeBranches(Object.assign({}, ...keywords) as Oas3_1Schema) }
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
