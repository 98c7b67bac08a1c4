// angular-oauth2-oidc 22.0.2. The redirect URI is the page. It repeats its scopes at each refresh.
import '@angular/compiler'
import './record.js'
import { provideHttpClient, withFetch } from '@angular/common/http'
import { provideZonelessChangeDetection } from '@angular/core'
import { createApplication } from '@angular/platform-browser'
import { OAuthService, provideOAuthClient } from 'angular-oauth2-oidc'

const { issuer, clientId, scope, prompt } = await (await fetch('/settings.json')).json()
const providers = [provideZonelessChangeDetection(), provideHttpClient(withFetch()), provideOAuthClient()]
const oauth = (await createApplication({ providers })).injector.get(OAuthService)
const customQueryParams = prompt === undefined ? {} : { prompt }
oauth.configure({
  issuer,
  clientId,
  redirectUri: `${location.origin}/`,
  responseType: 'code',
  scope,
  customQueryParams,
})
await oauth.loadDiscoveryDocumentAndTryLogin()
if (oauth.hasValidAccessToken()) await oauth.refreshToken()
else oauth.initCodeFlow()
