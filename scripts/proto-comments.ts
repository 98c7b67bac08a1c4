import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import {
  createFileRegistry,
  type DescEnum,
  type DescEnumValue,
  type DescField,
  type DescFile,
  type DescMessage,
  type DescMethod,
  type DescService,
  fromBinary,
} from '@bufbuild/protobuf'
import {
  DescriptorProtoSchema,
  EnumDescriptorProtoSchema,
  FileDescriptorProtoSchema,
  FileDescriptorSetSchema,
  ServiceDescriptorProtoSchema,
} from '@bufbuild/protobuf/wkt'

const run = promisify(execFile)
const root = fileURLToPath(new URL('..', import.meta.url))

/** A part of the protos that can have a comment. */
export type Commented = DescFile | DescMessage | DescField | DescMethod | DescService | DescEnum | DescEnumValue

/** The comments of proto/countersign. */
export interface ProtoComments {
  /**
   * The comment before a part, empty if it has none: lines as they are in the proto, without the space that follows the
   * slashes and without white space at their ends; paragraphs are separated by an empty line. The part can come from
   * gen/server or gen/client: it is found by its name.
   */
  of(desc: Commented): string
}

/**
 * Reads the comments of proto/countersign, which generated code does not have. Rejects if buf does not accept the
 * protos.
 */
export async function readProtoComments(): Promise<ProtoComments> {
  const { stdout } = await run(
    fileURLToPath(new URL('../node_modules/.bin/buf', import.meta.url)),
    ['build', 'proto', '--path', 'proto/countersign', '-o', '-'],
    { cwd: root, encoding: 'buffer', maxBuffer: 64 * 1024 * 1024 },
  )
  const { files } = createFileRegistry(fromBinary(FileDescriptorSetSchema, stdout))
  const comments = new Map([...files].flatMap((file) => [...commentsOf(file)]))
  return { of: (desc) => comments.get(String(desc)) ?? '' }
}

/** Part of a file, with its path in the source code info: field numbers and indices of descriptor.proto. */
type Located = readonly [part: Commented, path: readonly number[]]

function* commentsOf(file: DescFile): Generator<[name: string, comment: string]> {
  const byPath = new Map(
    file.proto.sourceCodeInfo?.location.map(({ path, leadingComments }) => [path.join('.'), cleaned(leadingComments)]),
  )
  for (const [part, path] of partsOf(file)) yield [String(part), byPath.get(path.join('.')) ?? '']
}

function partsOf(file: DescFile): Located[] {
  const { syntax, messageType, enumType, service } = FileDescriptorProtoSchema.field
  return [
    [file, [syntax.number]],
    ...file.messages.flatMap((message, index) => partsOfMessage(message, [messageType.number, index])),
    ...file.enums.flatMap((desc, index) => partsOfEnum(desc, [enumType.number, index])),
    ...file.services.flatMap((desc, index) => partsOfService(desc, [service.number, index])),
  ]
}

function partsOfMessage(message: DescMessage, path: readonly number[]): Located[] {
  const { field, nestedType, enumType } = DescriptorProtoSchema.field
  return [
    [message, path],
    ...message.fields.map((desc, index): Located => [desc, [...path, field.number, index]]),
    ...message.nestedMessages.flatMap((nested, index) => partsOfMessage(nested, [...path, nestedType.number, index])),
    ...message.nestedEnums.flatMap((nested, index) => partsOfEnum(nested, [...path, enumType.number, index])),
  ]
}

function partsOfEnum(desc: DescEnum, path: readonly number[]): Located[] {
  const { number } = EnumDescriptorProtoSchema.field.value
  return [[desc, path], ...desc.values.map((value, index): Located => [value, [...path, number, index]])]
}

function partsOfService(desc: DescService, path: readonly number[]): Located[] {
  const { number } = ServiceDescriptorProtoSchema.field.method
  return [[desc, path], ...desc.methods.map((method, index): Located => [method, [...path, number, index]])]
}

function cleaned(comment: string): string {
  return comment
    .split('\n')
    .map((line) => line.replace(/^ /, '').trimEnd())
    .join('\n')
    .trim()
}
