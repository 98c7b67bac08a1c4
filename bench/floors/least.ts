/** Serves the least sign-in on bare node:http (JSON, protobuf, gRPC-Web) or bare node:http2 (gRPC). */
import { createServer as createHttpServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { createServer as createHttp2Server, type ServerHttp2Stream } from 'node:http2'
import { create, fromBinary, toBinary } from '@bufbuild/protobuf'
import { SessionService } from '../../gen/server/countersign/v1/session_service_pb.ts'
import { SignInService } from '../../gen/server/countersign/v1/sign_in_service_pb.ts'
import { enveloped, pathOf } from '../grpc.ts'
import { listen } from './listen.ts'
import { challengeMessage, LeastSignIn, sessionMessage } from './sign-in.ts'

const { issueNonce, verifySignIn } = SignInService.method
const { getCurrentSession } = SessionService.method

/** Headers of an answer, beside those of its protocol. */
type AnswerHeaders = Readonly<Record<string, string>>

interface RequestHeaders {
  readonly origin?: string | undefined
  readonly authorization?: string | undefined
  readonly 'user-agent'?: string | undefined
}

const [redisUrl = '', protocol] = process.argv.slice(2)
const signIn = await LeastSignIn.open(redisUrl)

const noStore: AnswerHeaders = { 'cache-control': 'no-store' }
/** The headers that Countersign's answers have for a page of a trusted origin. */
const headersForBrowsers = (origin: string): AnswerHeaders => ({
  ...noStore,
  'x-content-type-options': 'nosniff',
  vary: 'Origin',
  'access-control-allow-origin': origin,
  'access-control-allow-credentials': 'true',
  'access-control-expose-headers':
    'Grpc-Status, Grpc-Message, Grpc-Status-Details-Bin, Content-Encoding, Connect-Content-Encoding, Set-Auth-Token, Retry-After',
})

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
      const proof = fromBinary(verifySignIn.input, message)
      const { token, session, headers } = await signIn.verify(proof, { ip, userAgent })
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
  const input = body.length > 0 ? JSON.parse(body.toString()) : {}
  switch (path) {
    case '/api/auth/session':
    case pathOf(getCurrentSession):
      return [JSON.stringify({ session: { ...(await signIn.session(authorization)), current: true } }), {}]
    case '/api/auth/wallet/nonce':
    case pathOf(issueNonce):
      return [JSON.stringify(await signIn.issue(origin)), {}]
    default: {
      const { token, session, headers } = await signIn.verify(input, { ip, userAgent })
      return [JSON.stringify({ ok: true, token, session: { ...session, current: true } }), headers]
    }
  }
}

/** The trailers of a gRPC-Web call that succeeded, in their envelope. */
const webTrailers = enveloped(Buffer.from('grpc-status: 0\r\n'))
webTrailers[0] = 0x80

async function answerHttp(request: IncomingMessage, response: ServerResponse, body: Buffer): Promise<void> {
  const { url = '', headers: requestHeaders, socket } = request
  const { 'content-type': contentType = 'application/json' } = requestHeaders
  const ip = socket.remoteAddress ?? ''
  const send = (answer: string | Uint8Array, headers: AnswerHeaders): void => {
    const common = headersForBrowsers(requestHeaders.origin ?? '')
    const length = Buffer.byteLength(answer)
    response.writeHead(200, { 'content-type': contentType, 'content-length': length, ...common, ...headers })
    response.end(answer)
  }
  if (contentType === 'application/json') send(...(await answerJson(url, body, requestHeaders, ip)))
  else if (contentType === 'application/proto') send(...(await answerBinary(url, body, requestHeaders, ip)))
  else {
    const [message, headers] = await answerBinary(url, body.subarray(5), requestHeaders, ip)
    send(Buffer.concat([enveloped(message), webTrailers]), headers)
  }
}

async function answerGrpc(
  stream: ServerHttp2Stream,
  headers: RequestHeaders & { ':path'?: string | undefined },
  body: Buffer,
) {
  const ip = stream.session?.socket.remoteAddress ?? ''
  const [message, answerHeaders] = await answerBinary(headers[':path'] ?? '', body.subarray(5), headers, ip)
  const type = { ':status': 200, 'content-type': 'application/grpc+proto' }
  stream.respond({ ...type, ...noStore, ...answerHeaders }, { waitForTrailers: true })
  stream.on('wantTrailers', () => stream.sendTrailers({ 'grpc-status': '0' }))
  stream.end(enveloped(message))
}

function collect(request: NodeJS.ReadableStream, onBody: (body: Buffer) => void): void {
  const chunks: Buffer[] = []
  request.on('data', (chunk: Buffer) => chunks.push(chunk))
  request.on('end', () => onBody(Buffer.concat(chunks)))
}

if (protocol === 'http2') {
  const server = createHttp2Server()
  server.on('stream', (stream: ServerHttp2Stream, headers) =>
    collect(stream, (body) =>
      answerGrpc(stream, headers, body).catch(() =>
        stream.respond({ ':status': 200, 'grpc-status': '16' }, { endStream: true }),
      ),
    ),
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
