import type { DescMethod, Message } from '@bufbuild/protobuf'
import { ConnectError, createClient } from '@connectrpc/connect'
import { createConnectTransport } from '@connectrpc/connect-web'
import { OrderKind, OrderService, WatchOrderResponseSchema } from '../../gen/server/countersign/v1/order_service_pb.ts'
import { GetCurrentSessionResponseSchema, SessionService } from '../../gen/server/countersign/v1/session_service_pb.ts'
import { SignInService } from '../../gen/server/countersign/v1/sign_in_service_pb.ts'
import { ErrorInfoSchema } from '../../gen/server/google/rpc/error_details_pb.ts'
import { restFromOutput } from '../../src/http/rest/json.ts'
import {
  appOrigin,
  type CallName,
  type ContractDriver,
  type Credential,
  EventsRefused,
  type Outcome,
} from './driver.ts'
import { credentialHeaders } from './rest-driver.ts'

const methods: Record<CallName, DescMethod> = { ...SignInService.method, ...OrderService.method }

type AnyCall = (input: object, options: object) => Promise<Message>

/** The contract's calls over Connect. */
export function rpcDriver(url: string): ContractDriver {
  const transport = createConnectTransport({ baseUrl: url })
  const session = createClient(SessionService, transport)
  const orders = createClient(OrderService, transport)
  const calls = { ...createClient(SignInService, transport), ...orders } as unknown as Record<CallName, AnyCall>
  return {
    ownOrigin: url,
    approvalPage: `${url}/c`,
    async call(name, input, origin = appOrigin): Promise<Outcome> {
      let headers = new Headers()
      try {
        const message = await calls[name](withKind(input), {
          headers: { origin },
          onHeader: (received: Headers) => {
            headers = received
          },
        })
        return { json: restFromOutput(methods[name].output, message), headers }
      } catch (thrown) {
        return { reason: reasonOf(thrown), json: undefined, headers }
      }
    },
    async *watch(input, signal, origin = appOrigin) {
      try {
        for await (const event of orders.watchOrder(input, { headers: { origin }, signal })) {
          yield restFromOutput(WatchOrderResponseSchema, event)
        }
      } catch (thrown) {
        if (signal.aborted) return
        throw new EventsRefused(reasonOf(thrown))
      }
    },
    async session(credential) {
      try {
        const answer = await session.getCurrentSession({}, { headers: credentialHeaders(credential) })
        return restFromOutput(GetCurrentSessionResponseSchema, answer).session as unknown as { userId: string }
      } catch (thrown) {
        if (/^SESSION_/.test(reasonOf(thrown))) return undefined
        throw thrown
      }
    },
    async sessions(credential: Credential) {
      const { sessions } = await session.listSessions({}, { headers: credentialHeaders(credential) })
      return sessions.map(({ id }) => id)
    },
    async signOut(credential) {
      await session.signOut({}, { headers: credentialHeaders(credential) })
    },
  }
}

function withKind(input: object): object {
  if (!('kind' in input)) return input
  return { ...input, kind: { login: OrderKind.LOGIN, sign: OrderKind.SIGN }[input.kind as 'login' | 'sign'] ?? 9 }
}

/** The reason that a failed call gives. What gives none is thrown. */
function reasonOf(thrown: unknown): string {
  const [info] = ConnectError.from(thrown).findDetails(ErrorInfoSchema)
  if (info === undefined) throw thrown
  return info.reason
}
