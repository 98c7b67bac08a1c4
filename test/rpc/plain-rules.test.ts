import {
  clone,
  create,
  createFileRegistry,
  type DescField,
  type DescMessage,
  fromBinary,
  getExtension,
  type Message,
  type MessageInitShape,
  setExtension,
  toBinary,
} from '@bufbuild/protobuf'
import { FieldOptionsSchema, FileDescriptorProtoSchema } from '@bufbuild/protobuf/wkt'
import { createValidator } from '@bufbuild/protovalidate'
import {
  type FieldRules,
  field as fieldOption,
  StringRulesSchema,
} from '@bufbuild/protovalidate/gen/buf/validate/validate_pb.js'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { OrderService } from '../../gen/server/countersign/v1/order_service_pb.ts'
import { SessionService } from '../../gen/server/countersign/v1/session_service_pb.ts'
import { SignInService } from '../../gen/server/countersign/v1/sign_in_service_pb.ts'
import { WalletService } from '../../gen/server/countersign/v1/wallet_service_pb.ts'
import { surelyValid } from '../../src/rpc/plain-rules.ts'

const match = (pattern: string, text: string): boolean => new RegExp(pattern, 'u').test(text)
const validator = createValidator({ regexMatch: match })
const schemas = [SignInService, SessionService, OrderService, WalletService]
  .flatMap(({ methods }) => methods.map(({ input }) => input))
  .flatMap((input) => [input, ...input.fields.flatMap(({ message }) => message ?? [])])

/** Texts on both sides of the rules' edges, in and outside of their alphabets. */
const texts = fc.oneof(
  fc.constantFrom(
    '',
    'a',
    '\u{1f511}',
    '\ud83d',
    'nimiq',
    'NIMIQ',
    '0xab',
    'ab'.repeat(32),
    '1234',
    '::1',
    'a%b',
    'a\nb',
  ),
  fc
    .tuple(
      fc.constantFrom('a', '0', '-', 'é', '\u{1f511}', '\ud83d'),
      fc.constantFrom(1, 2, 32, 45, 64, 80, 120, 128, 300, 500, 512, 1024, 2048, 8192, 32768),
      fc.integer({ min: -1, max: 1 }),
    )
    .map(([unit, length, off]) => unit.repeat(Math.max(0, Math.floor(length / unit.length) + off))),
  fc.string({ unit: 'binary', maxLength: 130 }),
)

/** What values of the scalar types look like. */
const typesOf: Readonly<Record<number, string>> = { 8: 'boolean', 9: 'string', 13: 'number' }

function anyValueOf(field: DescField): fc.Arbitrary<unknown> {
  if (field.fieldKind === 'message') return fc.oneof(fc.constant(undefined), nearlyValid(field.message))
  if (field.fieldKind === 'enum') return fc.integer({ min: -1, max: 5 })
  if (field.fieldKind !== 'scalar') throw new TypeError(`no values for ${field}`)
  return fc.oneof(texts, fc.boolean(), fc.nat()).filter((value) => typeof value === typesOf[field.scalar])
}

/** A value that is within the rules of nearly all fields. */
function goodValueOf(field: DescField): unknown {
  if (field.message !== undefined)
    return Object.fromEntries(field.message.fields.map((one) => [one.localName, goodValueOf(one)]))
  if (field.enum !== undefined) return 1
  return field.scalar === 9 ? (field.name === 'ip' ? '::1' : /code|digits/.test(field.name) ? '12' : 'ab') : undefined
}

/** A message that is valid but for one field, or two, which can have any value or none. */
function nearlyValid(schema: DescMessage): fc.Arbitrary<Record<string, unknown>> {
  const good = Object.fromEntries(schema.fields.map((field) => [field.localName, goodValueOf(field)]))
  const fields = schema.fields.filter(
    ({ fieldKind, scalar }) => fieldKind !== 'scalar' || typesOf[scalar] !== undefined,
  )
  if (fields.length === 0) return fc.constant(good)
  const change = fc
    .constantFrom(...fields)
    .chain((field) => fc.oneof(fc.constant(undefined), anyValueOf(field)).map((value) => [field.localName, value]))
  return fc.array(change, { maxLength: 2 }).map((changes) => ({ ...good, ...Object.fromEntries(changes) }))
}

/** The same message with other rules for a field. */
function withRules(schema: DescMessage, name: string, change: (rules: FieldRules) => void): DescMessage {
  const file = clone(FileDescriptorProtoSchema, schema.file.proto)
  const field = file.messageType.find((one) => one.name === schema.name)?.field.find((one) => one.name === name)
  if (field === undefined) throw new TypeError(`${schema} has no ${name}`)
  field.options ??= create(FieldOptionsSchema)
  const rules = getExtension(field.options, fieldOption)
  change(rules)
  setExtension(field.options, fieldOption, rules)
  const dependencies = new Map(schema.file.dependencies.map((one) => [`${one.name}.proto`, one]))
  const changed = createFileRegistry(file, (path) => dependencies.get(path)).getMessage(schema.typeName)
  if (changed === undefined) throw new TypeError(`${schema} is gone`)
  return changed
}

function textRules(init: MessageInitShape<typeof StringRulesSchema>): Pick<FieldRules, 'type'> {
  return { type: { case: 'string', value: create(StringRulesSchema, init) } }
}

describe('the quick check of messages', () => {
  it.each(schemas)('says of no %s that it is valid if protovalidate says otherwise', (schema) => {
    const surely = surelyValid(schema, match)
    fc.assert(
      fc.property(nearlyValid(schema), (init) => {
        const message = create(schema, init)
        if (surely(message)) expect(validator.validate(schema, message).kind).toBe('valid')
      }),
      { numRuns: 3000 },
    )
  })

  const { input: proof } = SignInService.method.verifySignIn
  const init = { nonceId: '\u{1f511}', publicKeyHex: 'ab', signatureHex: 'ab' }

  it.each<[string, (rules: FieldRules) => void]>([
    ['an expression', (rules) => rules.celExpression.push("this != '\u{1f511}'")],
    ['a rule of text that few fields have', (rules) => void Object.assign(rules, textRules({ contains: 'a' }))],
  ])('leaves %s to protovalidate', (_name, change) => {
    const schema = withRules(proof, 'nonce_id', (rules) => {
      Object.assign(rules, textRules({}))
      change(rules)
    })
    const message = create(schema, init as Record<string, unknown>)
    expect(validator.validate(schema, message).kind).toBe('invalid')
    expect(surelyValid(schema, match)(message)).toBe(false)
  })

  it('leaves rules of other files to protovalidate', () => {
    const schema = withRules(proof, 'nonce_id', (rules) => {
      const value = create(StringRulesSchema)
      value.$unknown = [{ no: 70_000_000, wireType: 0, data: Uint8Array.of(1) }]
      rules.type = { case: 'string', value }
    })
    expect(surelyValid(schema, match)(create(schema, init as Record<string, unknown>))).toBe(false)
  })

  it('counts the code points of a text, and not its UTF-16 units', () => {
    const schema = withRules(proof, 'nonce_id', (rules) => void Object.assign(rules, textRules({ minLen: 2n })))
    const message = create(schema, init as Record<string, unknown>)
    expect(validator.validate(schema, message).kind).toBe('invalid')
    expect(surelyValid(schema, match)(message)).toBe(false)
  })

  it.each<[name: string, schema: DescMessage, init: Record<string, unknown>]>([
    ['question for a nonce', SignInService.method.issueNonce.input, {}],
    ['question for the session', SessionService.method.getCurrentSession.input, {}],
    [
      'proof',
      SignInService.method.verifySignIn.input,
      { nonceId: 'n_-1', publicKeyHex: 'ab'.repeat(32), signatureHex: 'CD'.repeat(64), adapterId: 'ed25519' },
    ],
    ['start of an order', OrderService.method.startOrder.input, { kind: 1, displayTitle: 'Grüße' }],
    [
      'approval',
      OrderService.method.approveOrder.input,
      { orderId: 'o', challengeToken: 't', proof: { publicKeyHex: 'ab', signatureHex: 'cd' } },
    ],
  ])('knows an ordinary %s', (_name, schema, init) => {
    const message = create(schema, init) as Message
    expect(validator.validate(schema, message).kind).toBe('valid')
    expect(surelyValid(schema, match)(fromBinary(schema, toBinary(schema, message)))).toBe(true)
  })
})
