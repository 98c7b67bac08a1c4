import type { Settings } from '../../config.ts'
import { reasons } from '../../errors.ts'
import { sessionPaths } from '../../rest-paths.ts'
import { type Answer, ask, NoAnswerError, type Question } from './ask.ts'

/** What answers at an address. */
export type Look =
  | { readonly kind: 'countersign'; readonly answer: Answer }
  /** A Countersign that has its REST endpoints under another path. */
  | { readonly kind: 'other base path' }
  | { readonly kind: 'redirect'; readonly to: string }
  /** A proxy that does not reach what is behind it. */
  | { readonly kind: 'gateway error'; readonly status: number }
  | { readonly kind: 'something else'; readonly status: number }
  | { readonly kind: 'no answer'; readonly error: NoAnswerError }

/**
 * Asks at an address for the caller's session, which a Countersign refuses in its own words: a caller without a cookie has none. The
 * path is under the base path, because a proxy may pass on nothing else.
 */
export async function lookAt(
  url: string,
  { basePath }: Pick<Settings, 'basePath'>,
  signal: AbortSignal,
  question: Question = {},
): Promise<Look> {
  try {
    return judge(url, await ask(url + basePath + sessionPaths.current, question, signal))
  } catch (error) {
    if (error instanceof NoAnswerError) return { kind: 'no answer', error }
    throw error
  }
}

/**
 * What answers on a port of this machine, with or without TLS. `url` is an http address; over TLS any certificate will do, because
 * it is for the public address.
 */
export async function lookAtPort(
  url: string,
  settings: Pick<Settings, 'basePath'>,
  signal: AbortSignal,
): Promise<Look> {
  const plain = await lookAt(url, settings, signal)
  if (!maySpeakTls(plain)) return plain
  const secure = await lookAt(url.replace('http:', 'https:'), settings, signal, { anyCertificate: true })
  return isCountersign(secure) ? secure : plain
}

/** Whether a Countersign answers. */
export function isCountersign({ kind }: Look): boolean {
  return kind === 'countersign' || kind === 'other base path'
}

/** A port that expects TLS closes a connection without it at once, or answers 400. */
function maySpeakTls(look: Look): boolean {
  if (look.kind === 'something else') return look.status === 400
  return look.kind === 'no answer' && look.error.code !== '' && look.error.code !== 'ECONNREFUSED'
}

function judge(url: string, answer: Answer): Look {
  const { status, headers, json } = answer
  const { location } = headers
  if (status >= 300 && status < 400 && location !== undefined && URL.canParse(location, url)) {
    return { kind: 'redirect', to: new URL(location, url).origin }
  }
  if (json.code === 'ROUTE_NOT_FOUND') return { kind: 'other base path' }
  if (typeof json.code === 'string' && Object.hasOwn(reasons, json.code)) return { kind: 'countersign', answer }
  if (status >= 502 && status <= 504) return { kind: 'gateway error', status }
  return { kind: 'something else', status }
}
