/**
 * The floors for sign-ins: bare node:http with JSON, protobuf or gRPC-Web's envelope, whichever the content type names, and
 * bare node:http2 with gRPC. bench/README.md says what they do and leave out.
 */
import { createServer as createHttpServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { createServer as createHttp2Server, type ServerHttp2Stream } from 'node:http2'
import { create, fromBinary, toBinary } from '@bufbuild/protobuf'
import { SessionService } from '../gen/server/countersign/v1/session_service_pb.ts'
import { SignInService } from '../gen/server/countersign/v1/sign_in_service_pb.ts'
import { answerGrpc, collect, listen } from './bare.ts'
import { challengeMessage, sessionMessage } from './floor-messages.ts'
import { FloorSignIn, type FloorWork } from './floor-sign-in.ts'
import { openSteps } from './floor-steps.ts'
import { enveloped, pathOf } from './grpc.ts'
import { restPaths } from './rest.ts'

const { issueNonce, verifySignIn } = SignInService.method
const { getCurrentSession } = SessionService.method

/** What a call is answered with, beside the message. */
type AnswerHeaders = Readonly<Record<string, string>>

/** What is read of a request's headers. */
interface RequestHeaders {
  readonly origin?: string | undefined
  readonly authorization?: string | undefined
  readonly 'user-agent'?: string | undefined
}

const [store = '', work, protocol] = process.argv.slice(2)
const signIn = new FloorSignIn(await openSteps(store), work as FloorWork)

const noStore: AnswerHeaders = work === 'bare' ? {} : { 'cache-control': 'no-store' }

/** What Countersign tells browsers with each answer, a page of a trusted origin among them. */
function headersForBrowsers(origin: string): AnswerHeaders {
  if (work === 'bare') return {}
  return {
    ...noStore,
    'x-content-type-options': 'nosniff',
    vary: 'Origin',
    'access-control-allow-origin': origin,
    'access-control-allow-credentials': 'true',
    'access-control-expose-headers': exposedHeaders,
  }
}

const exposedHeaders =
  'Grpc-Status, Grpc-Message, Grpc-Status-Details-Bin, Content-Encoding, Connect-Content-Encoding, Set-Auth-Token, Retry-After'

async function answerBinary(
  path: string,
  message: Uint8Array,
  { origin = '', authorization = '', 'user-agent': userAgent = '' }: RequestHeaders,
  ip: string,
): Promise<[message: Uint8Array, headers: AnswerHeaders]> {
  switch (path) {
    case pathOf(issueNonce): {
      fromBinary(issueNonce.input, message)
      const challenge = challengeMessage(await signIn.issue(origin))
      return [toBinary(issueNonce.output, create(issueNonce.output, challenge)), {}]
    }
    case pathOf(verifySignIn): {
      const { token, session, headers } = await signIn.verify(fromBinary(verifySignIn.input, message), {
        ip,
        userAgent,
      })
      const answer = create(verifySignIn.output, { ok: true, token, session: sessionMessage(session) })
      return [toBinary(verifySignIn.output, answer), headers]
    }
    default: {
      fromBinary(getCurrentSession.input, message)
      const session = sessionMessage(await signIn.session(authorization))
      return [toBinary(getCurrentSession.output, create(getCurrentSession.output, { session })), {}]
    }
  }
}

async function answerJson(
  path: string,
  body: Buffer,
  { origin = '', authorization = '', 'user-agent': userAgent = '' }: RequestHeaders,
  ip: string,
): Promise<[answer: string, headers: AnswerHeaders]> {
  switch (path) {
    case restPaths.session:
    case pathOf(getCurrentSession): {
      if (body.length > 0) JSON.parse(body.toString())
      return [JSON.stringify({ session: { ...(await signIn.session(authorization)), current: true } }), {}]
    }
    case restPaths.nonce:
    case pathOf(issueNonce): {
      JSON.parse(body.toString())
      return [JSON.stringify(await signIn.issue(origin)), {}]
    }
    default: {
      const { token, session, headers } = await signIn.verify(JSON.parse(body.toString()), { ip, userAgent })
      return [JSON.stringify({ ok: true, token, session: { ...session, current: true } }), headers]
    }
  }
}

/** The trailers of a gRPC-Web call that succeeded, in their envelope. */
const webTrailers = enveloped(Buffer.from('grpc-status: 0\r\n'))
webTrailers[0] = 0x80

async function answerHttp(request: IncomingMessage, response: ServerResponse, body: Buffer): Promise<void> {
  const { url = '', headers: requestHeaders, socket } = request
  const { remoteAddress = '' } = socket
  const { 'content-type': contentType = 'application/json' } = requestHeaders
  const send = (answer: string | Uint8Array, headers: AnswerHeaders): void => {
    const length = Buffer.byteLength(answer)
    const common = headersForBrowsers(requestHeaders.origin ?? '')
    response.writeHead(200, { 'content-type': contentType, 'content-length': length, ...common, ...headers })
    response.end(answer)
  }
  if (contentType === 'application/json') {
    send(...(await answerJson(url, body, requestHeaders, remoteAddress)))
  } else if (contentType === 'application/proto') {
    send(...(await answerBinary(url, body, requestHeaders, remoteAddress)))
  } else {
    const [message, headers] = await answerBinary(url, body.subarray(5), requestHeaders, remoteAddress)
    send(Buffer.concat([enveloped(message), webTrailers]), headers)
  }
}

if (protocol === 'http2') {
  const server = createHttp2Server()
  server.on('stream', (stream: ServerHttp2Stream, headers) =>
    collect(stream, async (body) => {
      try {
        const { ':path': path = '' } = headers
        const { remoteAddress = '' } = stream.session?.socket ?? {}
        const [message, answerHeaders] = await answerBinary(path, body.subarray(5), headers, remoteAddress)
        answerGrpc(stream, enveloped(message), { ...noStore, ...answerHeaders })
      } catch {
        stream.respond({ ':status': 200, 'grpc-status': '16' }, { endStream: true })
      }
    }),
  )
  listen(server)
} else {
  // Connections are idle while others have their turn.
  const server = createHttpServer({ keepAliveTimeout: 0 }, (request, response) =>
    collect(request, (body) => answerHttp(request, response, body).catch(() => response.writeHead(401).end())),
  )
  listen(server)
}
process.once('SIGTERM', () => process.exit())
