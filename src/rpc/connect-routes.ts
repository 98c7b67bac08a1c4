import type { DescService } from '@bufbuild/protobuf'
import {
  type ConnectRouter,
  type ContextKey,
  createContextKey,
  type HandlerContext,
  type ServiceImpl,
} from '@connectrpc/connect'
import { type RequestContext, readRequest } from '../request.ts'
import type { Call } from './call.ts'
import type { UnaryMethod } from './methods.ts'

/** Where a transport leaves what it read of the request; without it (an in-memory transport) the headers have to do. */
export const requestKey: ContextKey<RequestContext | undefined> = createContextKey<RequestContext | undefined>(
  undefined,
  {
    description: 'the request as the domain sees it',
  },
)

/** What a handler gets, made from what Connect gives. */
export function callOf(context: HandlerContext): Call {
  return {
    request: context.values.get(requestKey) ?? requestOf(context),
    responseHeaders: context.responseHeader,
    signal: context.signal,
  }
}

/** Registers a service's unary RPCs with Connect. */
export function registerService<Service extends DescService>(
  router: ConnectRouter,
  service: Service,
  methods: readonly UnaryMethod[],
  streams: Partial<ServiceImpl<Service>> = {},
): void {
  const own = methods.filter(({ desc }) => desc.parent.typeName === service.typeName)
  const unary = own.map(({ desc, run }) => [
    desc.localName,
    (message: Parameters<typeof run>[0], context: HandlerContext) => run(message, callOf(context)),
  ])
  // The table pairs every RPC with a handler of its type; by name alone TypeScript cannot see it.
  router.service(service, { ...Object.fromEntries(unary), ...streams } as Partial<ServiceImpl<Service>>)
}

function requestOf(context: HandlerContext): RequestContext {
  const url = new URL(context.url)
  const scheme = url.protocol === 'https:' ? 'https' : 'http'
  return readRequest({ headers: context.requestHeader, scheme, authority: url.host, remoteAddress: undefined }, 0)
}
