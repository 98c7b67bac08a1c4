// oidc-client-ts 3.5.0. It repeats its scopes at each refresh.
import './record.js'
import { UserManager } from 'oidc-client-ts'

const { issuer, clientId, scope, prompt } = await (await fetch('/settings.json')).json()
const redirect_uri = `${location.origin}/`
const manager = new UserManager({ authority: issuer, client_id: clientId, redirect_uri, scope, prompt })
if (new URLSearchParams(location.search).has('code')) {
  await manager.signinCallback()
  await manager.signinSilent()
} else await manager.signinRedirect()
