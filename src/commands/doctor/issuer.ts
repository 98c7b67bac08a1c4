import { keyTimes } from '../../base/rotation-key.ts'
import { ask } from './ask.ts'
import { type Check, ok, problem } from './check.ts'
import type { Setup } from './setup.ts'

const publishSeconds = (keyTimes.publishMs / 1000).toLocaleString('en')

/** Whether applications find the OpenID Connect issuer where its public address says that it is. */
export const issuer: Check<Setup> = {
  name: 'issuer',
  applies: ({ settings }) => settings.oidc.clients !== undefined,
  needs: ['public url'],
  async run({ publicUrl }, signal) {
    const address = `${publicUrl}/.well-known/openid-configuration`
    const { status, json } = await ask(address, {}, signal)
    if (json.issuer === publicUrl) {
      return ok(
        `applications find the issuer at ${publicUrl}. When the secret changes, put the new one last in the list for ${publishSeconds} s, and keep the old one for 90 days`,
      )
    }
    if (typeof json.issuer !== 'string') return problem(`${address} answers ${status}, without an issuer`)
    return problem(`${address} names another issuer`, 'Correct COUNTERSIGN_PUBLIC_URL, or restart the service with it.')
  },
  advice:
    'Let the proxy pass on /.well-known/ and the paths under COUNTERSIGN_BASE_PATH, and restart the service with COUNTERSIGN_OIDC_CLIENTS.',
}
