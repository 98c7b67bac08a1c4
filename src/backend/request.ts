import { parseOrigin } from '../origin.ts'

/** A request as the Fetch API has it: a `Request`, or an object that has the same three properties. */
export interface FetchRequest {
  readonly method: string
  /** Absolute URL. */
  readonly url: string
  readonly headers: Pick<Headers, 'get'>
}

/** A request as Node has it: an `IncomingMessage` of node:http, or a request of node:http2. */
export interface NodeRequest {
  readonly method?: string | undefined
  readonly headers: Readonly<Record<string, string | readonly string[] | undefined>>
  readonly socket?: object | undefined
}

/** A request, or the headers of one. */
export type RequestInput = Pick<Headers, 'get'> | FetchRequest | NodeRequest

/** What is looked at in a request. */
export interface RequestFacts {
  /** A header by its name in lower case. */
  header(name: string): string | undefined
  /** Method in upper case; `undefined` if it is unknown. */
  readonly method: string | undefined
  /** Origin that the request was sent to; `undefined` if it is unknown. */
  readonly ownOrigin: string | undefined
}

/** Reads a request in any of the forms that frameworks have. Throws a `TypeError` if it is none of them. */
export function readRequest(request: RequestInput): RequestFacts {
  if (typeof request === 'object' && request !== null) {
    if ('get' in request && typeof request.get === 'function' && !('headers' in request)) {
      return { header: fromHeaders(request), method: undefined, ownOrigin: undefined }
    }
    if ('headers' in request && typeof request.headers === 'object' && request.headers !== null) {
      return isFetchRequest(request) ? readFetchRequest(request) : readNodeRequest(request as NodeRequest)
    }
  }
  throw new TypeError('verify takes a token, Headers, a Request or an IncomingMessage')
}

function isFetchRequest(request: object): request is FetchRequest {
  return 'get' in (request as FetchRequest).headers && typeof (request as FetchRequest).headers.get === 'function'
}

function readFetchRequest({ method, url, headers }: FetchRequest): RequestFacts {
  const ownOrigin = URL.canParse(url) ? parseOrigin(new URL(url).origin) : undefined
  return { header: fromHeaders(headers), method: method.toUpperCase(), ownOrigin }
}

function fromHeaders(headers: Pick<Headers, 'get'>): RequestFacts['header'] {
  return (name) => headers.get(name) ?? undefined
}

function readNodeRequest({ method, headers, socket }: NodeRequest): RequestFacts {
  const header = (name: string): string | undefined => {
    const value = headers[name]
    return typeof value === 'object' ? value.join(name === 'cookie' ? '; ' : ', ') : value
  }
  const scheme = socket !== undefined && 'encrypted' in socket && socket.encrypted === true ? 'https' : 'http'
  const ownOrigin = parseOrigin(`${scheme}://${header(':authority') ?? header('host') ?? ''}`)
  return { header, method: method?.toUpperCase(), ownOrigin }
}
