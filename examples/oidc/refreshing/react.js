// react-oauth2-code-pkce 1.24.0. The redirect URI is the page. It repeats its scopes at each refresh.
import './record.js'
import { createElement } from 'react'
import { createRoot } from 'react-dom/client'
import { AuthProvider } from 'react-oauth2-code-pkce'

const { issuer, clientId, scope, prompt } = await (await fetch('/settings.json')).json()
const metadata = await (await fetch(`${issuer}/.well-known/openid-configuration`)).json()
const authConfig = {
  clientId,
  authorizationEndpoint: metadata.authorization_endpoint,
  tokenEndpoint: metadata.token_endpoint,
  redirectUri: `${location.origin}/`,
  scope,
  extraAuthParameters: prompt === undefined ? {} : { prompt },
  autoLogin: true,
  decodeToken: false,
  // It refreshes at the next look, within five seconds.
  tokenExpiresIn: 1,
}
const root = document.body.appendChild(document.createElement('main'))
createRoot(root).render(createElement(AuthProvider, { authConfig }))
