import { type RestAnswer, rest } from './rest.ts'

/** Calls the REST interface as a browser does. */
export interface Recorder {
  /** Everything that was sent and answered. */
  readonly seen: Set<string>
  call(path: string, body?: object, headers?: Record<string, string>): Promise<RestAnswer>
}

/** All texts in an answer that could be secret or somebody's: what has no fixed set of values. */
function textsIn(value: unknown): string[] {
  if (typeof value === 'string') return [value, ...value.split('\n').flatMap((line) => line.split(': ').slice(1))]
  if (typeof value !== 'object' || value === null) return []
  return Object.values(value).flatMap(textsIn)
}

const publicWords =
  /^([A-Z]+(_[A-Z]+)+|nimiq|ethereum|login|sign|created|claimed|waiting_user|approved|finalized|rejected|\/|order\.approve|auth\.login|Countersign.*|http:\/\/localhost:\d+|127\.0\.0\.1|node|\d{1,2})$/

/** Whether a text is no secret, and stands in metrics, logs or traces by right. */
export function isPublic(text: string): boolean {
  return publicWords.test(text)
}

/** Calls as a browser does, and keeps everything that was sent and answered. */
export function recorder(url: string): Recorder {
  const seen = new Set<string>()
  return {
    seen,
    async call(path: string, body?: object, headers: Record<string, string> = {}) {
      const answer = await rest(url, path, body, headers)
      const cookies = answer.headers.getSetCookie().map((cookie) => cookie.split(';')[0]?.split('=')[1] ?? '')
      for (const text of [...textsIn(body), ...textsIn(answer.json), ...textsIn(headers), ...cookies]) seen.add(text)
      return answer
    },
  }
}
