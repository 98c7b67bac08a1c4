import { expect } from 'vitest'

/** An answer of the REST interface. */
export interface RestAnswer {
  readonly status: number
  readonly headers: Headers
  // biome-ignore lint/suspicious/noExplicitAny: tests look at fields that they name.
  readonly json: any
}

/** The header that presents a token. */
export function bearer(token: string): { authorization: string } {
  return { authorization: `Bearer ${token}` }
}

/** The JSON of an answer that has to be a success. */
export function okay({ status, json }: RestAnswer): RestAnswer['json'] {
  expect(status, JSON.stringify(json)).toBe(200)
  return json
}

/** Status and reason of a refusal. */
export function refusal({ status, json }: RestAnswer): [number, string] {
  return [status, json.code]
}

/** Calls the REST interface of a service, from the service's own origin unless `headers` says otherwise. */
export async function rest(
  url: string,
  path: string,
  body?: unknown,
  headers: Record<string, string> = {},
): Promise<RestAnswer> {
  const response = await fetch(`${url}/api/auth${path}`, {
    ...(body === undefined ? {} : { method: 'POST', body: JSON.stringify(body) }),
    headers: { ...(body === undefined ? {} : { 'content-type': 'application/json' }), ...headers },
  })
  const text = await response.text()
  return { status: response.status, headers: response.headers, json: text === '' ? undefined : JSON.parse(text) }
}
