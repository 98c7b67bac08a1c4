import { type IncomingMessage, request, type ServerResponse } from 'node:http'

/** Passes a request on to a service at `target`, as a proxy does that is asked by `scheme`. */
export function passOn(from: IncomingMessage, to: ServerResponse, target: string, scheme: 'http' | 'https'): void {
  const { method, url, headers } = from
  const forwarded = {
    ...headers,
    'x-forwarded-proto': scheme,
    'x-forwarded-host': headers.host,
    'x-forwarded-for': '203.0.113.7',
  }
  const onward = request(`${target}${url}`, { method, headers: forwarded }, (answer) => {
    to.writeHead(answer.statusCode ?? 502, answer.headers)
    answer.pipe(to)
  })
  onward.on('error', () => to.destroy())
  to.on('close', () => onward.destroy())
  from.pipe(onward)
}
