import { type Metadata, ServerInterceptingCall, type ServerInterceptor, status } from '@grpc/grpc-js'
import { admission, type GuardOptions } from './refusal.ts'
import type { Session } from './session.ts'
import type { SessionVerifier } from './session-verifier.ts'

/** By the metadata that the handler gets: grpc-js has no other way from an interceptor to it. */
const sessions = new WeakMap<object, Session>()

const codes = { 401: status.UNAUTHENTICATED, 403: status.PERMISSION_DENIED, 503: status.UNAVAILABLE } as const

/**
 * Interceptor for servers of `@grpc/grpc-js` that lets only calls with a live session through, which {@link sessionOf}
 * returns. All others end with UNAUTHENTICATED, with PERMISSION_DENIED if the cookie does not count because of the
 * Origin or the user is in none of the groups, or with UNAVAILABLE if sessions cannot be checked at the moment. A
 * stream is checked once, when it begins.
 */
export function requireSession(verifier: SessionVerifier, options?: GuardOptions): ServerInterceptor {
  const admit = admission(verifier, options)
  return (_method, call) =>
    new ServerInterceptingCall(call, {
      start: (next) =>
        next({
          onReceiveMetadata(metadata, pass) {
            admit(headersOf(metadata)).then(
              (admitted) => {
                if ('refusal' in admitted) {
                  const { status: httpStatus, body } = admitted.refusal
                  call.sendStatus({ code: codes[httpStatus], details: body.message })
                  return
                }
                sessions.set(metadata, admitted.session)
                pass(metadata)
              },
              () => call.sendStatus({ code: status.INTERNAL, details: 'The session could not be checked' }),
            )
          },
        }),
    })
}

/** The session of a call that {@link requireSession} let through. Throws a `TypeError` if it did not see the call. */
export function sessionOf(call: { readonly metadata: Metadata }): Session {
  const session = sessions.get(call.metadata)
  if (session === undefined) throw new TypeError('sessionOf needs the interceptor requireSession on the server')
  return session
}

/** The metadata as headers. A browser's can be among them: proxies turn gRPC-Web into gRPC. */
function headersOf(metadata: Metadata): Pick<Headers, 'get'> {
  return {
    get(name) {
      const values = metadata.get(name)
      return values.length === 0 ? null : values.join(name === 'cookie' ? '; ' : ', ')
    },
  }
}
