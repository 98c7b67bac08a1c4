import { randomUUID } from 'node:crypto'
import { isLoopbackHost } from '../../shared/origin.ts'
import { sessionPaths, signInPaths } from '../../shared/rest-paths.ts'
import { ask } from './ask.ts'
import { type Check, type Finding, ok, problem, skipped, warning } from './check.ts'
import type { Setup } from './setup.ts'

/** A host that does not exist (RFC 2606). */
const forgedHost = 'countersign-doctor.invalid'

/** Most origins of the settings that are tried. */
const maxOrigins = 10

/** Whether the public addresses lead to a Countersign. */
export const publicUrl: Check<Setup> = {
  name: 'public url',
  needs: ['port', 'https'],
  run: async (setup) => await Promise.all(setup.urls.map((url) => checkAddress(setup, url))),
  advice: 'Let the proxy pass requests on to the service.',
}

async function checkAddress(setup: Setup, url: string): Promise<Finding> {
  const [look, runsHere] = await Promise.all([setup.lookAt(url), setup.runsHere()])
  const setting = url === setup.publicUrl ? 'COUNTERSIGN_PUBLIC_URL' : '--url'
  const { basePath } = setup.settings
  switch (look.kind) {
    case 'countersign':
      return ok(`Countersign answers at ${url}`)
    case 'redirect':
      if (look.to === new URL(url).origin) {
        return problem(
          `${url} redirects calls to another path`,
          'Let the proxy pass them on to the service as they are.',
        )
      }
      return problem(
        `${url} redirects to ${look.to}, which browsers see as another origin`,
        `Set ${setting} to ${look.to}.`,
      )
    case 'other base path':
      return problem(
        `Countersign answers at ${url}, but has nothing at ${basePath}`,
        'Give doctor the settings of the running service (COUNTERSIGN_BASE_PATH), or let the proxy leave paths ' +
          'as they are.',
      )
    case 'something else':
      return problem(
        `something else than Countersign answers at ${url + basePath} (status ${look.status})`,
        `Let the proxy pass that path on to the service, or correct ${setting}.`,
      )
    case 'gateway error':
      if (!runsHere)
        return skipped(`the proxy at ${url} reaches no service (status ${look.status}), and none runs here; start it`)
      return problem(
        `the proxy at ${url} does not reach the service (status ${look.status})`,
        `Let the proxy pass requests on to ${setup.localUrl ?? 'the port of the service'}.`,
      )
    case 'no answer': {
      if (look.error.code === 'ENOTFOUND') {
        const fix = `Check the spelling of ${setting}, or give the name an address.`
        return problem(`${new URL(url).hostname} has no address in the DNS`, fix)
      }
      const why = `${url} cannot be reached from here: ${look.error.message}`
      if (!runsHere) return skipped(`${why}; start the service and run doctor again`)
      return problem(why, `Start the proxy, let this machine's name service know its name, or correct ${setting}.`)
    }
  }
}

/** Whether the service says that it can serve. */
export const readiness: Check<Setup> = {
  name: 'readiness',
  needs: ['public url', 'store'],
  async run({ publicUrl }, signal) {
    const { status } = await ask(`${publicUrl}/readyz`, {}, signal)
    if (status === 200) return ok('the service is ready')
    if (status === 503) return problem('the service says at /readyz that it is not ready')
    return skipped(`${publicUrl}/readyz answers ${status}, so the proxy does not pass it on`)
  },
  advice: 'Look at its log for "store unavailable"; it may also be about to stop.',
}

/** How the service judges the origin of a request. */
type Judgement =
  | { readonly kind: 'trusted' }
  | { readonly kind: 'refused'; readonly origin: string; readonly source: string }
  | { readonly kind: 'unclear'; readonly saw: string }

/**
 * Requests a nonce of an application that does not exist. The service judges the origin first and refuses the request
 * in any case, so that nothing is stored.
 */
async function judgedOrigin(
  { settings }: Setup,
  url: string,
  { headers, signal }: { readonly headers: Readonly<Record<string, string>>; readonly signal: AbortSignal },
): Promise<Judgement> {
  const { basePath, endpointPrefix } = settings
  const body = { appName: `countersign doctor ${randomUUID()}` }
  const { status, json } = await ask(url + basePath + endpointPrefix + signInPaths.nonce, { headers, body }, signal)
  if (json.code === 'APP_NAME_MISMATCH') return { kind: 'trusted' }
  const { origin, originSource } = (json.metadata ?? {}) as Readonly<Record<string, unknown>>
  if (json.code === 'ORIGIN_NOT_TRUSTED' && originSource !== undefined) {
    return { kind: 'refused', origin: String(origin) || 'none', source: String(originSource) }
  }
  return { kind: 'unclear', saw: `the service answers ${status} ${String(json.code ?? '')}`.trim() }
}

/** Whether the service sees through the proxy where callers sent their requests, and believes only the proxy. */
export const forwardedHeaders: Check<Setup> = {
  name: 'forwarded headers',
  needs: ['public url'],
  run: async (setup, signal) => await Promise.all(setup.urls.map((url) => checkForwarding(setup, url, signal))),
  advice:
    'Let the proxy overwrite X-Forwarded-For, X-Forwarded-Host and X-Forwarded-Proto, or correct ' +
    'COUNTERSIGN_TRUST_PROXY, which is the number of proxies (off without one).',
}

async function checkForwarding(setup: Setup, url: string, signal: AbortSignal): Promise<Finding> {
  const own = await judgedOrigin(setup, url, { headers: {}, signal })
  if (own.kind === 'unclear') return skipped(`${own.saw} at ${url}`)
  if (own.kind === 'refused' && own.origin !== new URL(url).origin) {
    const { trustProxy } = setup.settings
    const headers = 'X-Forwarded-Host, X-Forwarded-Proto and X-Forwarded-For'
    return problem(
      `a request to ${url} reaches the service as one to ${own.origin} (read from the ${own.source})`,
      trustProxy === 0
        ? `Set COUNTERSIGN_TRUST_PROXY to the number of proxies, and let them send ${headers}.`
        : `Let the proxy send ${headers} as docs/proxies.md shows; COUNTERSIGN_TRUST_PROXY (${trustProxy}) is ` +
            'the number of proxies.',
    )
  }
  const headers = { 'x-forwarded-host': forgedHost, 'x-forwarded-proto': 'https' }
  const forged = await judgedOrigin(setup, url, { headers, signal })
  if (forged.kind === 'refused' && forged.origin.endsWith(`//${forgedHost}`)) {
    return problem(`the service believes the X-Forwarded-Host that a client sends to ${url}`)
  }
  return ok(`the service sees requests to ${url} as such, and does not believe forged headers`)
}

/**
 * Whether the service trusts the origins that it should: its own pages', those of `--origin`, and those of the
 * settings.
 */
export const origins: Check<Setup> = {
  name: 'origins',
  async run(setup, signal) {
    const { kind } = await setup.lookAt(setup.publicUrl)
    if (kind === 'no answer' || kind === 'gateway error') return checkSettings(setup)
    if (kind !== 'countersign') return skipped('because the service does not answer at its public address')
    const findings = await Promise.all([
      ...setup.urls.map((url) => checkPage(setup, { url, origin: new URL(url).origin }, signal)),
      ...setup.origins.map((origin) => checkPage(setup, { url: setup.publicUrl, origin }, signal)),
      ...configuredOthers(setup).map((origin) => checkConfigured(setup, origin, signal)),
    ])
    return findings.filter((finding) => finding !== undefined)
  },
  advice: 'Correct COUNTERSIGN_TRUSTED_ORIGINS.',
}

/** What the settings alone say, while no service answers. */
function checkSettings(setup: Setup): Finding | readonly Finding[] {
  const { publicUrl, settings, origins } = setup
  const wanted = [...(settings.pages.served ? [publicUrl] : []), ...origins]
  const untrusted = wanted.filter((origin) => !trusts(setup, origin))
  if (untrusted.length > 0) return untrusted.map((origin) => notTrusted(origin, publicUrl))
  return skipped('because the service does not answer at its public address; the settings fit')
}

/**
 * Whether the settings have an origin among the trusted ones. By default these are publicUrl and the loopback names
 * beside it.
 */
function trusts({ settings, publicUrl }: Setup, origin: string): boolean {
  if (settings.trustedOrigins !== undefined) return settings.trustedOrigins.includes(origin)
  const [own, other] = [new URL(publicUrl), new URL(origin)]
  const areLoopback = isLoopbackHost(own.hostname) && isLoopbackHost(other.hostname)
  return origin === publicUrl || (areLoopback && own.port === other.port && own.protocol === other.protocol)
}

/** Whether pages of an origin may sign users in by way of an address. */
async function checkPage(
  setup: Setup,
  { url, origin }: { readonly url: string; readonly origin: string },
  signal: AbortSignal,
): Promise<Finding> {
  const judgement = await judgedOrigin(setup, url, { headers: { origin }, signal })
  if (judgement.kind === 'unclear') return skipped(`${judgement.saw} at ${url}`)
  if (judgement.kind === 'trusted') return ok(`pages of ${origin} may sign users in`)
  const { settings, publicUrl } = setup
  if (!settings.pages.served && origin === publicUrl)
    return ok(`${origin} serves no pages, and none of it may sign users in`)
  return settings.trustedOrigins?.includes(origin) ? otherSettings(origin) : notTrusted(origin, url)
}

function notTrusted(origin: string, url: string): Finding {
  return problem(
    `pages of ${origin} may not sign users in${origin === url ? ', though the service has its own pages there' : ''}`,
    `Add ${origin} to COUNTERSIGN_TRUSTED_ORIGINS.`,
  )
}

/** Origins of the settings that are checked in no other way. */
function configuredOthers({ settings, urls, origins }: Setup): readonly string[] {
  const others = (settings.trustedOrigins ?? []).filter((origin) => !urls.includes(origin) && !origins.includes(origin))
  return others.slice(0, maxOrigins)
}

/** Whether the running service lets pages of an origin of the settings read its answers. */
async function checkConfigured(
  { publicUrl, settings }: Setup,
  origin: string,
  signal: AbortSignal,
): Promise<Finding | undefined> {
  const url = publicUrl + settings.basePath + sessionPaths.current
  const { headers } = await ask(url, { headers: { origin } }, signal)
  return headers['access-control-allow-origin'] === origin ? undefined : otherSettings(origin)
}

function otherSettings(origin: string): Finding {
  return warning(
    `${origin} is one of the trusted origins, but the running service does not let its pages in`,
    'Restart the service with these settings, and let the proxy pass on Access-Control headers.',
  )
}
