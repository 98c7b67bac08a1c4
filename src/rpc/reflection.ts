import { type DescExtension, type DescFile, type DescService, toBinary } from '@bufbuild/protobuf'
import { nestedTypes } from '@bufbuild/protobuf/reflect'
import { FileDescriptorProtoSchema } from '@bufbuild/protobuf/wkt'
import { Code } from '@connectrpc/connect'
import { file_google_rpc_error_details } from '../../gen/server/google/rpc/error_details_pb.ts'
import { Health } from '../../gen/server/grpc/health/v1/health_pb.ts'
import {
  type ServerReflectionRequest,
  ServerReflection as V1,
} from '../../gen/server/grpc/reflection/v1/reflection_pb.ts'
import {
  ServerReflection as V1Alpha,
  type ServerReflectionRequest as V1AlphaRequest,
} from '../../gen/server/grpc/reflection/v1alpha/reflection_pb.ts'
import { CallEnded } from '../shared/errors.ts'
import { type BidiMethod, bidiMethod } from './methods.ts'

/** Most requests of one stream. A tool that requests every file by its name needs about 20. */
const maxRequests = 100

/**
 * grpc.reflection.v1.ServerReflection and its older name v1alpha, from which grpcurl, grpcui and Postman learn the
 * calls. Covers the given services, gRPC's own, and the details of errors, with all imports of their files. Comments
 * are left out.
 *
 * Each request has one response, in order; a name that is not found has an error response, and the stream continues. An
 * imported file is sent once in a stream. After {@link maxRequests} requests the stream ends with RESOURCE_EXHAUSTED.
 *
 * Source: https://github.com/grpc/grpc/blob/master/doc/server-reflection.md
 */
export function reflectionMethods(services: readonly DescService[]): readonly BidiMethod[] {
  const listed = [...new Set([...services, Health, V1, V1Alpha])]
  const schema = new Schema(listed)
  const limit = 'reflection'
  return [
    bidiMethod(V1.method.serverReflectionInfo, { limit, handle: (requests) => answersOf(schema, requests) }),
    bidiMethod(V1Alpha.method.serverReflectionInfo, { limit, handle: (requests) => answersOf(schema, requests) }),
  ]
}

type AnyRequest = ServerReflectionRequest | V1AlphaRequest

/** Content of a response; both versions have the same fields. */
type Answer =
  | { case: 'fileDescriptorResponse'; value: { fileDescriptorProto: Uint8Array[] } }
  | { case: 'allExtensionNumbersResponse'; value: { baseTypeName: string; extensionNumber: number[] } }
  | { case: 'listServicesResponse'; value: { service: { name: string }[] } }
  | { case: 'errorResponse'; value: { errorCode: number; errorMessage: string } }

async function* answersOf<Request extends AnyRequest>(
  schema: Schema,
  requests: AsyncIterable<Request>,
): AsyncGenerator<{ validHost: string; originalRequest: Request; messageResponse: Answer }, void, undefined> {
  const sent = new Set<DescFile>()
  let answered = 0
  for await (const request of requests) {
    if (answered === maxRequests) throw new CallEnded('resource_exhausted')
    answered++
    yield {
      validHost: request.host,
      originalRequest: request,
      messageResponse: answerTo(request.messageRequest, schema, sent),
    }
  }
}

function answerTo(request: AnyRequest['messageRequest'], schema: Schema, sent: Set<DescFile>): Answer {
  switch (request.case) {
    case 'listServices':
      return { case: 'listServicesResponse', value: { service: schema.services.map((name) => ({ name })) } }
    case 'fileByFilename':
      return withImports(schema.file(request.value), sent)
    case 'fileContainingSymbol':
      return withImports(schema.fileOf(request.value), sent)
    case 'fileContainingExtension': {
      const { containingType, extensionNumber } = request.value
      return withImports(
        schema.extensionsOf(containingType).find(({ number }) => number === extensionNumber)?.file,
        sent,
      )
    }
    case 'allExtensionNumbersOfType': {
      if (schema.fileOf(request.value) === undefined) return notFound
      const extensionNumber = schema.extensionsOf(request.value).map(({ number }) => number)
      return { case: 'allExtensionNumbersResponse', value: { baseTypeName: request.value, extensionNumber } }
    }
    case undefined:
      return failure(Code.InvalidArgument, 'The request is of a kind that this server does not support')
  }
}

function failure(errorCode: Code, errorMessage: string): Answer {
  return { case: 'errorResponse', value: { errorCode, errorMessage } }
}

const notFound = failure(Code.NotFound, 'No file or symbol has this name')

/** A file and all its imports, without those that the stream has already sent. */
function withImports(file: DescFile | undefined, sent: Set<DescFile>): Answer {
  if (file === undefined) return notFound
  const files = [file, ...importsOf(file)].filter((each) => each === file || !sent.has(each))
  for (const each of files) sent.add(each)
  return { case: 'fileDescriptorResponse', value: { fileDescriptorProto: files.map(bytesOf) } }
}

function importsOf(file: DescFile, found: Set<DescFile> = new Set()): Set<DescFile> {
  for (const each of file.dependencies) {
    if (found.has(each)) continue
    found.add(each)
    importsOf(each, found)
  }
  return found
}

const written = new WeakMap<DescFile, Uint8Array>()

/** A file in binary form, made on first use. */
function bytesOf(file: DescFile): Uint8Array {
  const bytes = written.get(file) ?? toBinary(FileDescriptorProtoSchema, file.proto)
  written.set(file, bytes)
  return bytes
}

/** Files of services, by the names in them. */
class Schema {
  /** Full names of the services. */
  readonly services: readonly string[]
  readonly #files: ReadonlyMap<string, DescFile>
  readonly #symbols: ReadonlyMap<string, DescFile>
  readonly #extensions: readonly DescExtension[]

  constructor(services: readonly DescService[]) {
    this.services = services.map(({ typeName }) => typeName)
    const roots = [...services.map(({ file }) => file), file_google_rpc_error_details]
    const files = [...new Set(roots.flatMap((file) => [file, ...importsOf(file)]))]
    this.#files = new Map(files.map((file) => [file.proto.name, file]))
    this.#symbols = new Map(files.flatMap((file) => symbolsOf(file).map((symbol) => [symbol, file] as const)))
    this.#extensions = files.flatMap((file) => [...nestedTypes(file)].filter((type) => type.kind === 'extension'))
  }

  /** The file of a name such as `countersign/v1/order_service.proto`. */
  file(name: string): DescFile | undefined {
    return this.#files.get(name)
  }

  /** The file that declares a message, an enum, a service or an extension, or a member of one. */
  fileOf(symbol: string): DescFile | undefined {
    return this.#symbols.get(symbol)
  }

  extensionsOf(typeName: string): readonly DescExtension[] {
    return this.#extensions.filter(({ extendee }) => extendee.typeName === typeName)
  }
}

/** Full names of all declarations in a file. */
function symbolsOf(file: DescFile): string[] {
  return [...nestedTypes(file)].flatMap((type) => {
    const { typeName } = type
    switch (type.kind) {
      case 'message':
        return [typeName, ...[...type.fields, ...type.oneofs].map(({ name }) => `${typeName}.${name}`)]
      case 'service':
        return [typeName, ...type.methods.map(({ name }) => `${typeName}.${name}`)]
      case 'enum': {
        // The values of an enum are declared beside it, as in C++.
        const scope = typeName.slice(0, -type.name.length)
        return [typeName, ...type.values.map(({ name }) => `${scope}${name}`)]
      }
      default:
        return [typeName]
    }
  })
}
