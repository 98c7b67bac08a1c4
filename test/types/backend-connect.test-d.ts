// The assertion is that it compiles, here and in a project that has the package installed (consumer.test.ts).
import type { ConnectRouter, HandlerContext, Interceptor } from '@connectrpc/connect'
import { createSessionVerifier, type Session } from 'countersign/backend'
import { requireSession, sessionKey, sessionOf } from 'countersign/backend/connect'
import { SessionService } from 'countersign/gen/session_service_pb'

const guard: Interceptor = requireSession(createSessionVerifier({ url: 'http://localhost:8080' }))

export function routes(router: ConnectRouter): void {
  const getCurrentSession = (_request: unknown, context: HandlerContext) => {
    const session: Session = sessionOf(context)
    const maybe: Session | undefined = context.values.get(sessionKey)
    // @ts-expect-error: without the interceptor there is none.
    return { session: { id: session.id, userId: context.values.get(sessionKey).userId, address: maybe?.address ?? '' } }
  }
  router.service(SessionService, { getCurrentSession }, { interceptors: [guard] })
}
