import { ask } from './ask.ts'
import { type Check, type Finding, ok, problem, skipped } from './check.ts'
import type { Examination } from './examination.ts'
import type { Look } from './look.ts'

/** Whether the public addresses lead to a Countersign. */
export const publicUrlCheck: Check<Examination> = {
  name: 'public url',
  needs: ['port', 'https'],
  limitMs: 4500,
  async run(examination) {
    return await Promise.all(examination.urls.map((url) => checkAddress(examination, url)))
  },
}

/** Whether the service says that it can serve. */
export const readinessCheck: Check<Examination> = {
  name: 'readiness',
  needs: ['public url', 'store'],
  limitMs: 4000,
  async run({ publicUrl }, signal) {
    const { status } = await ask(`${publicUrl}/readyz`, {}, signal)
    if (status === 200) return [ok('the service is ready')]
    if (status === 503) {
      return [
        problem(
          'the service says at /readyz that it is not ready',
          'Look at its log for "store unavailable"; it may also be about to stop.',
        ),
      ]
    }
    return [skipped(`${publicUrl}/readyz answers ${status}, so the proxy does not pass it on`)]
  },
}

async function checkAddress(examination: Examination, url: string): Promise<Finding> {
  const [look, runsHere] = await Promise.all([examination.lookAt(url), examination.runsHere()])
  const isOwn = url === examination.publicUrl
  const setting = isOwn ? 'COUNTERSIGN_PUBLIC_URL' : '--url'
  switch (look.kind) {
    case 'countersign':
      return ok(`Countersign answers at ${url}`)
    case 'redirect':
      return redirected(url, look, setting)
    case 'other base path':
      return problem(
        `Countersign answers at ${url}, but has nothing at ${examination.settings.basePath}`,
        'Give doctor the settings of the running service (COUNTERSIGN_BASE_PATH), or let the proxy leave paths as they are.',
      )
    case 'something else':
      return problem(
        `something else than Countersign answers at ${url + examination.settings.basePath} (status ${look.status})`,
        `Let the proxy pass that path on to the service, or correct ${setting}.`,
      )
    case 'gateway error':
      if (!runsHere)
        return skipped(`the proxy at ${url} reaches no service (status ${look.status}), and none runs here; start it`)
      return problem(
        `the proxy at ${url} does not reach the service (status ${look.status})`,
        `Let the proxy pass requests on to ${examination.localUrl ?? 'the port of the service'}.`,
      )
    case 'no answer': {
      const why = `${url} cannot be reached from here: ${look.error.message}`
      if (!runsHere) return skipped(`${why}; start the service and run doctor again`)
      return problem(why, `Start the proxy, let this machine's name service know its name, or correct ${setting}.`)
    }
  }
}

function redirected(url: string, { to }: Look & { kind: 'redirect' }, setting: string): Finding {
  if (to === new URL(url).origin) {
    return problem(`${url} redirects calls to another path`, 'Let the proxy pass them on to the service as they are.')
  }
  return problem(`${url} redirects to ${to}, which browsers see as another origin`, `Set ${setting} to ${to}.`)
}
