/** The floors for orders: bare node:http with JSON and server-sent events, and bare node:http2 with gRPC. */
import { createServer as createHttpServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { createServer as createHttp2Server, type ServerHttp2Stream } from 'node:http2'
import { create, fromBinary, toBinary } from '@bufbuild/protobuf'
import { OrderService, OrderStatus } from '../gen/server/countersign/v1/order_service_pb.ts'
import { answerGrpc, collect, listen } from './bare.ts'
import { FloorOrders } from './floor-orders.ts'
import { openSteps } from './floor-steps.ts'
import { enveloped, pathOf } from './grpc.ts'
import { restPaths } from './rest.ts'

const { startOrder, claimOrder, getOrderChallenge, approveOrder, finalizeOrder, watchOrder } = OrderService.method
const [store = '', protocol] = process.argv.slice(2)
const orders = new FloorOrders(await openSteps(store))

const statuses: Readonly<Record<string, OrderStatus>> = {
  created: OrderStatus.CREATED,
  claimed: OrderStatus.CLAIMED,
  waiting_user: OrderStatus.WAITING_USER,
  approved: OrderStatus.APPROVED,
  finalized: OrderStatus.FINALIZED,
}

async function answerRest(request: IncomingMessage, response: ServerResponse, body: Buffer): Promise<void> {
  const [path = '', query = ''] = (request.url ?? '').split('?')
  const orderId = new URLSearchParams(query).get('orderId') ?? ''
  if (path === restPaths.order('events')) {
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    let sequence = 0
    const onStatus = (status: string): void =>
      void response.write(`id: ${++sequence}\ndata: ${JSON.stringify({ sequence, status, at: Date.now() })}\n\n`)
    await orders.watch(orderId, onStatus, () => response.end())
    return
  }
  const input = body.length === 0 ? { orderId } : JSON.parse(body.toString())
  const answer = JSON.stringify(await stepOf(path, input, request.headers.origin ?? ''))
  response.writeHead(200, { 'content-type': 'application/json', 'content-length': Buffer.byteLength(answer) })
  response.end(answer)
}

// biome-ignore lint/suspicious/noExplicitAny: what is in it is looked at by the step.
async function stepOf(path: string, input: any, origin: string): Promise<Readonly<Record<string, string>>> {
  switch (path) {
    case restPaths.order('start'):
      return await orders.start(origin)
    case restPaths.order('claim'):
      return await orders.claim(input)
    case restPaths.order('challenge'):
      return await orders.challenge(input)
    case restPaths.order('approve'):
      return await orders.approve(input.orderId, input.proof)
    default:
      return await orders.finalize(input)
  }
}

async function answerBinary(path: string, message: Uint8Array, origin: string): Promise<Uint8Array> {
  switch (path) {
    case pathOf(startOrder):
      fromBinary(startOrder.input, message)
      return toBinary(startOrder.output, create(startOrder.output, await orders.start(origin)))
    case pathOf(claimOrder): {
      const { orderId } = fromBinary(claimOrder.input, message)
      return toBinary(claimOrder.output, create(claimOrder.output, await orders.claim({ orderId })))
    }
    case pathOf(getOrderChallenge): {
      const { orderId } = fromBinary(getOrderChallenge.input, message)
      return toBinary(getOrderChallenge.output, create(getOrderChallenge.output, await orders.challenge({ orderId })))
    }
    case pathOf(approveOrder): {
      const { orderId, proof } = fromBinary(approveOrder.input, message)
      const { publicKeyHex = '', signatureHex = '' } = proof ?? {}
      const approved = await orders.approve(orderId, { publicKeyHex, signatureHex })
      return toBinary(approveOrder.output, create(approveOrder.output, approved))
    }
    default: {
      const { orderId } = fromBinary(finalizeOrder.input, message)
      return toBinary(finalizeOrder.output, create(finalizeOrder.output, await orders.finalize({ orderId })))
    }
  }
}

async function answerStream(stream: ServerHttp2Stream, path: string, body: Buffer, origin: string): Promise<void> {
  const message = body.subarray(5)
  if (path !== pathOf(watchOrder)) {
    answerGrpc(stream, enveloped(await answerBinary(path, message, origin)))
    return
  }
  const { orderId } = fromBinary(watchOrder.input, message)
  stream.respond({ ':status': 200, 'content-type': 'application/grpc+proto' }, { waitForTrailers: true })
  stream.on('wantTrailers', () => stream.sendTrailers({ 'grpc-status': '0' }))
  let sequence = 0
  const onStatus = (status: string): void => {
    const event = { sequence: ++sequence, status: statuses[status] ?? OrderStatus.UNSPECIFIED, at: BigInt(Date.now()) }
    stream.write(enveloped(toBinary(watchOrder.output, create(watchOrder.output, event))))
  }
  await orders.watch(orderId, onStatus, () => stream.end())
}

if (protocol === 'http2') {
  const server = createHttp2Server()
  server.on('stream', (stream: ServerHttp2Stream, headers) =>
    collect(stream, (body) =>
      answerStream(stream, headers[':path'] ?? '', body, headers.origin ?? '').catch(() =>
        stream.respond({ ':status': 200, 'grpc-status': '9' }, { endStream: true }),
      ),
    ),
  )
  listen(server)
} else {
  // Connections are idle while others have their turn.
  const server = createHttpServer({ keepAliveTimeout: 0 }, (request, response) =>
    collect(request, (body) => answerRest(request, response, body).catch(() => response.writeHead(400).end())),
  )
  listen(server)
}
process.once('SIGTERM', () => process.exit())
