import { once } from 'node:events'
import http2 from 'node:http2'
import { setTimeout as pause } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { create, createFileRegistry, fromBinary, type JsonValue, toBinary } from '@bufbuild/protobuf'
import { type FileDescriptorProto, FileDescriptorProtoSchema, FileDescriptorSetSchema } from '@bufbuild/protobuf/wkt'
import * as grpc from '@grpc/grpc-js'
import { loadSync } from '@grpc/proto-loader'
import { describe, expect, onTestFinished, test } from 'vitest'
import { OrderService } from '../../gen/server/countersign/v1/order_service_pb.ts'
import { SignInService } from '../../gen/server/countersign/v1/sign_in_service_pb.ts'
import { ServerReflection, ServerReflectionRequestSchema } from '../../gen/server/grpc/reflection/v1/reflection_pb.ts'
import { mountService } from '../support/mounted.ts'
import { callRaw, envelope } from '../support/rpc-call.ts'
import { startService } from '../support/service.ts'

const order = 'countersign.v1.OrderService'
const orderFile = 'countersign/v1/order_service.proto'
const healthFile = 'grpc/health/v1/health.proto'
const validateFile = 'buf/validate/validate.proto'
const fieldOptions = 'google.protobuf.FieldOptions'

type Request = Readonly<Record<string, unknown>>

interface Response {
  readonly fileDescriptorResponse?: { readonly fileDescriptorProto: readonly Buffer[] }
  readonly allExtensionNumbersResponse?: { readonly extensionNumber: readonly number[] }
  readonly listServicesResponse?: { readonly service: readonly { readonly name: string }[] }
  readonly errorResponse?: { readonly errorCode: number; readonly errorMessage: string }
}

type Stream = grpc.ClientDuplexStream<Request, Response>

/** Opens streams of reflection as tools do, through gRPC's own client. */
function reflectionOf(url: string, version = 'v1'): () => Stream {
  const includeDirs = [fileURLToPath(new URL('../../proto', import.meta.url))]
  const definition = loadSync(`grpc/reflection/${version}/reflection.proto`, { includeDirs })
  // biome-ignore lint/suspicious/noExplicitAny: grpc-js makes clients without types.
  const loaded = grpc.loadPackageDefinition(definition) as any
  const Client = loaded.grpc.reflection[version].ServerReflection
  const client = new Client(new URL(url).host, grpc.credentials.createInsecure())
  onTestFinished(() => client.close())
  return () => client.serverReflectionInfo()
}

/** The answers to requests that are all sent at once. Rejects as the stream does. */
async function ask(stream: Stream, ...requests: readonly Request[]): Promise<Response[]> {
  for (const request of requests) stream.write(request)
  stream.end()
  const responses: Response[] = []
  for await (const response of stream) responses.push(response as Response)
  return responses
}

function filesOf({ fileDescriptorResponse }: Response): FileDescriptorProto[] {
  const files = fileDescriptorResponse?.fileDescriptorProto ?? []
  return files.map((bytes) => fromBinary(FileDescriptorProtoSchema, bytes))
}

const namesOf = (response: Response): string[] => filesOf(response).map(({ name }) => name)

describe.each(['v1', 'v1alpha'])('%s', (version) => {
  test('lists the services, and tells their calls with the rules of every field', async () => {
    const { url } = await startService()
    const [listed, ...described] = await ask(
      reflectionOf(url, version)(),
      { listServices: '' },
      { fileContainingSymbol: order },
      { fileContainingSymbol: SignInService.typeName },
    )
    expect(listed?.listServicesResponse?.service.map(({ name }) => name)).toEqual([
      'countersign.v1.SignInService',
      'countersign.v1.OrderService',
      'countersign.v1.SessionService',
      'countersign.v1.WalletService',
      'grpc.health.v1.Health',
      'grpc.reflection.v1.ServerReflection',
      'grpc.reflection.v1alpha.ServerReflection',
    ])
    // What a tool makes of it: every import is there, and each file came once.
    const files = described.flatMap(filesOf)
    expect(files.map(({ name }) => name)).toContain(validateFile)
    expect(new Set(files.map(({ name }) => name)).size).toBe(files.length)
    const registry = createFileRegistry(create(FileDescriptorSetSchema, { file: sorted(files) }))
    expect(registry.getService(order)?.methods.map(({ name }) => name)).toEqual(
      OrderService.methods.map(({ name }) => name),
    )
    const bytes = files.find(({ name }) => name === orderFile)
    expect(bytes && toBinary(FileDescriptorProtoSchema, bytes)).toEqual(
      toBinary(FileDescriptorProtoSchema, OrderService.file.proto),
    )
  })

  test('finds files by name, by what they declare, and by extension', async () => {
    const { url } = await startService()
    const found: readonly (readonly [Request, string])[] = [
      [{ fileByFilename: orderFile }, orderFile],
      [{ fileContainingSymbol: `${order}.WatchOrder` }, orderFile],
      [{ fileContainingSymbol: 'countersign.v1.OrderStatus' }, orderFile],
      [{ fileContainingSymbol: 'countersign.v1.ORDER_STATUS_CREATED' }, orderFile],
      [{ fileContainingSymbol: 'countersign.v1.StartOrderRequest.payload' }, orderFile],
      // Nested; and what errors carry.
      [{ fileContainingSymbol: 'grpc.health.v1.HealthCheckResponse.ServingStatus' }, healthFile],
      [{ fileContainingSymbol: 'grpc.health.v1.HealthCheckResponse.SERVING' }, healthFile],
      [{ fileContainingSymbol: 'google.rpc.ErrorInfo' }, 'google/rpc/error_details.proto'],
      [{ fileContainingSymbol: 'buf.validate.field' }, validateFile],
      [{ fileContainingExtension: { containingType: fieldOptions, extensionNumber: 1159 } }, validateFile],
    ]
    const responses = await ask(reflectionOf(url, version)(), ...found.map(([request]) => request))
    expect(responses.map((response) => namesOf(response)[0])).toEqual(found.map(([, file]) => file))
    const [numbers, none] = await ask(
      reflectionOf(url, version)(),
      { allExtensionNumbersOfType: fieldOptions },
      { allExtensionNumbersOfType: 'countersign.v1.Session' },
    )
    expect(numbers?.allExtensionNumbersResponse?.extensionNumber).toEqual([1159, 1160])
    expect(none?.allExtensionNumbersResponse?.extensionNumber ?? []).toEqual([])
  })
})

/** Files in the order in which a registry takes them: imports first. */
function sorted(files: readonly FileDescriptorProto[]): FileDescriptorProto[] {
  const placed = new Set<FileDescriptorProto>()
  const place = (file: FileDescriptorProto): void => {
    if (placed.has(file)) return
    for (const name of file.dependency) place(files.find((each) => each.name === name) ?? expect.fail(`no ${name}`))
    placed.add(file)
  }
  files.forEach(place)
  return [...placed]
}

test('what is not there is an error of that request only', async () => {
  const { url } = await startService()
  const responses = await ask(
    reflectionOf(url)(),
    { fileByFilename: '../../etc/passwd' },
    { fileContainingSymbol: 'constructor' },
    { fileContainingExtension: { containingType: fieldOptions, extensionNumber: 1 } },
    { allExtensionNumbersOfType: 'no.Type' },
    {},
    { fileByFilename: orderFile },
  )
  const { NOT_FOUND, INVALID_ARGUMENT } = grpc.status
  expect(responses.map(({ errorResponse }) => errorResponse?.errorCode)).toEqual([
    ...[NOT_FOUND, NOT_FOUND, NOT_FOUND, NOT_FOUND],
    INVALID_ARGUMENT,
    undefined,
  ])
})

test('each request is answered before the next one is sent, with itself', async () => {
  const { url } = await startService()
  const stream = reflectionOf(url)()
  for (const fileByFilename of [orderFile, validateFile, 'none']) {
    stream.write({ host: 'a', fileByFilename })
    const [response] = await once(stream, 'data')
    expect(response).toMatchObject({ validHost: 'a', originalRequest: { host: 'a', fileByFilename } })
  }
  const ended = once(stream, 'status')
  stream.end()
  expect((await ended)[0]).toMatchObject({ code: grpc.status.OK })
})

const request = (fields: { readonly fileByFilename: string }): Buffer =>
  envelope(
    toBinary(
      ServerReflectionRequestSchema,
      create(ServerReflectionRequestSchema, {
        messageRequest: { case: 'fileByFilename', value: fields.fileByFilename },
      }),
    ),
  )

test.each([
  ['application/grpc-web+proto', (body: Buffer) => body],
  ['application/grpc-web-text', (body: Buffer) => Buffer.from(body.toString('base64'))],
  ['application/connect+proto', (body: Buffer) => body],
])('over HTTP/1.1 as %s, a body with two requests has two answers', async (type, written) => {
  const { url } = await startService()
  const body = Buffer.concat([request({ fileByFilename: orderFile }), request({ fileByFilename: 'none' })])
  const method = ServerReflection.method.serverReflectionInfo
  const { messages, failure } = await callRaw(url, method, type, written(body))
  expect(failure).toBeUndefined()
  expect(messages.map((message) => Object.keys(message as Record<string, JsonValue>).at(-1))).toEqual([
    'fileDescriptorResponse',
    'errorResponse',
  ])
})

test('a server of the application’s own answers it', async () => {
  const { url } = await mountService((service) =>
    http2.createServer((incoming, outgoing) => service().handler(incoming, outgoing)),
  )
  const [response] = await ask(reflectionOf(url)(), { fileByFilename: orderFile })
  expect(namesOf(response ?? {})[0]).toBe(orderFile)
})

test('switched off, it is not there', async () => {
  const { url } = await startService({ reflection: false })
  await expect(ask(reflectionOf(url)(), { listServices: '' })).rejects.toMatchObject({
    code: grpc.status.UNIMPLEMENTED,
  })
})

describe('limits', () => {
  test('a stream takes 100 requests', async () => {
    const { url } = await startService()
    const stream = reflectionOf(url)()
    let answered = 0
    stream.on('data', () => answered++)
    const failed = once(stream, 'error')
    for (let i = 0; i < 101; i++) stream.write({ fileByFilename: orderFile })
    expect((await failed)[0]).toMatchObject({ code: grpc.status.RESOURCE_EXHAUSTED })
    expect(answered).toBe(100)
  })

  test.each([
    ['one request', [70_000]],
    ['all requests together', [40_000, 40_000]],
  ])('%s: 64 KiB at most', async (_what, lengths) => {
    const { url } = await startService()
    const requests = lengths.map((length) => ({ fileByFilename: 'a'.repeat(length) }))
    await expect(ask(reflectionOf(url)(), ...requests)).rejects.toMatchObject({
      code: grpc.status.RESOURCE_EXHAUSTED,
      details: 'The body is larger than 65536 bytes',
    })
  })

  test('a stream that stays open is ended well after five seconds, on any server', { timeout: 30_000 }, async () => {
    const { url } = await mountService((service) =>
      http2.createServer((incoming, outgoing) => service().handler(incoming, outgoing)),
    )
    const own = await startService()
    const startedAt = performance.now()
    const codes = await Promise.all(
      [url, own.url].map(async (each) => {
        const stream = reflectionOf(each)()
        stream.on('data', () => {})
        stream.write({ listServices: '' })
        return (await once(stream, 'status'))[0].code
      }),
    )
    expect(codes).toEqual([grpc.status.OK, grpc.status.OK])
    expect(performance.now() - startedAt).toBeGreaterThan(4_000)
  })

  test('a client that does not read its answers is not read either', async () => {
    let bytesRead = (): number => 0
    const { url } = await mountService((service) =>
      http2
        .createServer((incoming, outgoing) => service().handler(incoming, outgoing))
        .on('session', ({ socket }) => {
          bytesRead = () => socket.bytesRead
        }),
    )
    const client = http2.connect(url)
    onTestFinished(() => client.destroy())
    const { name, parent } = ServerReflection.method.serverReflectionInfo
    const stream = client.request({
      ':method': 'POST',
      ':path': `/${parent.typeName}/${name}`,
      'content-type': 'application/grpc',
    })
    stream.on('error', () => {})
    // More answers than fit into the stream's window of 64 KiB, and then a flood.
    for (let i = 0; i < 20; i++) stream.write(request({ fileByFilename: validateFile }))
    await once(stream, 'response')
    stream.write(Buffer.alloc(20_000_000))
    await pause(1500)
    expect(bytesRead()).toBeGreaterThan(500)
    expect(bytesRead()).toBeLessThan(1_000_000)
  })

  test('open ones count as streams', async () => {
    const { url } = await startService({ maxStreams: 1 })
    const open = reflectionOf(url)
    const first = open()
    first.write({ listServices: '' })
    await once(first, 'data')
    await expect(ask(open(), { listServices: '' })).rejects.toMatchObject({ code: grpc.status.UNAVAILABLE })
    const ended = once(first, 'status')
    first.end()
    await ended
    await expect
      .poll(() =>
        ask(open(), { listServices: '' }).then(
          ({ length }) => length,
          () => 0,
        ),
      )
      .toBe(1)
  })

  test('a client address has 120 of them a minute', async () => {
    const { url } = await startService({ rateLimit: true })
    const open = reflectionOf(url)
    const calls = Array.from({ length: 200 }, () => ask(open(), { listServices: '' }))
    const refused = (await Promise.allSettled(calls)).filter(({ status }) => status === 'rejected')
    // A slow machine lets one more through every half a second.
    expect(refused.length).toBeLessThanOrEqual(80)
    expect(refused.length).toBeGreaterThan(0)
    for (const refusal of refused) expect(refusal).toMatchObject({ reason: { code: grpc.status.RESOURCE_EXHAUSTED } })
  })

  test('a request that is cut off is refused', async () => {
    const { url } = await startService()
    const body = request({ fileByFilename: orderFile })
    const cut = body.subarray(0, body.length - 1)
    const method = ServerReflection.method.serverReflectionInfo
    const { failure } = await callRaw(url, method, 'application/grpc-web+proto', cut)
    expect(failure).toMatchObject({ code: 'invalid_argument', message: 'The body ends before its message' })
  })
})
