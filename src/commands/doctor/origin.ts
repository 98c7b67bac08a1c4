import { randomUUID } from 'node:crypto'
import { sessionPaths, signInPaths } from '../../rest-paths.ts'
import { ask } from './ask.ts'
import { type Check, type Finding, ok, problem, skipped, warning } from './check.ts'
import type { Examination } from './examination.ts'

/** A host that nobody has (RFC 2606). */
const forgedHost = 'countersign-doctor.invalid'

/** Most origins of the settings that are tried. */
const maxOrigins = 10

/** Whether the service sees through the proxy where callers sent their requests, and believes nobody but the proxy. */
export const forwardedHeadersCheck: Check<Examination> = {
  name: 'forwarded headers',
  needs: ['public url'],
  limitMs: 6500,
  async run(examination, signal) {
    return await Promise.all(examination.urls.map((url) => checkForwarding(examination, url, signal)))
  },
}

/** Whether the service trusts the origins that it should. */
export const originsCheck: Check<Examination> = {
  name: 'origins',
  needs: [],
  limitMs: 8000,
  async run(examination, signal) {
    const { kind } = await examination.lookAt(examination.publicUrl)
    if (kind === 'no answer' || kind === 'gateway error') return [checkSettings(examination)]
    if (kind !== 'countersign') return [skipped('because the service does not answer at its public address')]
    const findings = await Promise.all(examination.urls.map((url) => checkPage(examination, url, signal)))
    return [...findings, ...(await checkConfigured(examination, signal))]
  },
}

/** What the settings alone say, while no service answers. */
function checkSettings({ settings, publicUrl }: Examination): Finding {
  const { trustedOrigins, pages } = settings
  if (trustedOrigins?.includes(publicUrl) === false && pages) return untrusted(publicUrl)
  return skipped('because the service does not answer at its public address; the settings fit')
}

/** How the service judges the origin of a request. */
type Judgement =
  | { readonly kind: 'trusted' }
  | { readonly kind: 'refused'; readonly origin: string; readonly source: string }
  | { readonly kind: 'unclear'; readonly saw: string }

/**
 * Asks for a nonce of an application that there is not. The service judges the origin first and refuses the request in any case,
 * so that nothing is stored.
 */
async function judgedOrigin(
  { settings }: Examination,
  url: string,
  headers: Readonly<Record<string, string>>,
  signal: AbortSignal,
): Promise<Judgement> {
  const { basePath, endpointPrefix } = settings
  const body = { appName: `countersign doctor ${randomUUID()}` }
  const { status, json } = await ask(url + basePath + endpointPrefix + signInPaths.nonce, { headers, body }, signal)
  if (json.code === 'APP_NAME_MISMATCH') return { kind: 'trusted' }
  const [, origin, source] = /\((.+), read from the (.+?)\)/.exec(String(json.message)) ?? []
  if (json.code === 'ORIGIN_NOT_TRUSTED' && origin !== undefined && source !== undefined) {
    return { kind: 'refused', origin, source }
  }
  return { kind: 'unclear', saw: `the service answers ${status} ${String(json.code ?? '')}`.trim() }
}

async function checkForwarding(examination: Examination, url: string, signal: AbortSignal): Promise<Finding> {
  const own = await judgedOrigin(examination, url, {}, signal)
  if (own.kind === 'unclear') return skipped(`${own.saw} at ${url}`)
  if (own.kind === 'refused' && own.origin !== new URL(url).origin) {
    return problem(
      `a request to ${url} reaches the service as one to ${own.origin} (read from the ${own.source})`,
      adviceOn(examination.settings),
    )
  }
  const headers = { 'x-forwarded-host': forgedHost, 'x-forwarded-proto': 'https' }
  const forged = await judgedOrigin(examination, url, headers, signal)
  if (forged.kind === 'refused' && forged.origin.endsWith(`//${forgedHost}`)) {
    return problem(
      `the service believes the X-Forwarded-Host that a client sends to ${url}`,
      'Let the proxy overwrite X-Forwarded-For, X-Forwarded-Host and X-Forwarded-Proto, or correct COUNTERSIGN_TRUST_PROXY, which is the number of proxies (off without one).',
    )
  }
  return ok(`the service sees requests to ${url} as such, and does not believe forged headers`)
}

function adviceOn({ trustProxy }: Examination['settings']): string {
  const headers = 'X-Forwarded-Host, X-Forwarded-Proto and X-Forwarded-For'
  if (trustProxy === 0) return `Set COUNTERSIGN_TRUST_PROXY to the number of proxies, and let them send ${headers}.`
  return `Let the proxy send ${headers} as docs/operations.md shows; COUNTERSIGN_TRUST_PROXY (${trustProxy}) is the number of proxies.`
}

/** Whether the service's own pages at an address may sign users in. */
async function checkPage(examination: Examination, url: string, signal: AbortSignal): Promise<Finding> {
  const { origin } = new URL(url)
  const judgement = await judgedOrigin(examination, url, { origin }, signal)
  if (judgement.kind === 'unclear') return skipped(`${judgement.saw} at ${url}`)
  if (judgement.kind === 'trusted') return ok(`pages of ${origin} may sign users in`)
  const { settings } = examination
  if (!settings.pages && url === examination.publicUrl)
    return ok(`${origin} serves no pages, and none of it may sign users in`)
  if (settings.trustedOrigins?.includes(origin)) return otherSettings(origin)
  return untrusted(origin)
}

function untrusted(origin: string): Finding {
  return problem(
    `pages of ${origin} may not sign users in, though the service has its own pages there`,
    `Add ${origin} to COUNTERSIGN_TRUSTED_ORIGINS.`,
  )
}

/** Whether the running service lets pages of the configured origins read its answers. */
async function checkConfigured(examination: Examination, signal: AbortSignal): Promise<readonly Finding[]> {
  const { publicUrl, settings, urls } = examination
  const others = (settings.trustedOrigins ?? []).filter((origin) => !urls.includes(origin)).slice(0, maxOrigins)
  const findings = await Promise.all(
    others.map(async (origin) => {
      const { headers } = await ask(
        publicUrl + settings.basePath + sessionPaths.current,
        { headers: { origin } },
        signal,
      )
      if (headers['access-control-allow-origin'] === origin) return []
      return [otherSettings(origin)]
    }),
  )
  return findings.flat()
}

function otherSettings(origin: string): Finding {
  return warning(
    `${origin} is one of the trusted origins, but the running service does not let its pages in`,
    'Restart the service with these settings, and let the proxy pass on Access-Control headers.',
  )
}
