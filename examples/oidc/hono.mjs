// Hono with @hono/oidc-auth 1.8.1.
// Redirect URI: /callback, with a route of its own; OIDC_REDIRECT_URI has it in full.
// Asks for all scopes that the issuer has, or OIDC_SCOPES; an e-mail address is optional.
// OIDC_AUTH_EXTERNAL_URL is for an application behind a proxy.
import { serve } from '@hono/node-server'
import { getAuth, initOidcAuthMiddleware, oidcAuthMiddleware, processOAuthCallback } from '@hono/oidc-auth'
import { Hono } from 'hono'

const { ISSUER, CLIENT_ID, CLIENT_SECRET, APP_URL, APP_SECRET, PORT, SCOPE } = process.env

const app = new Hono()
app.use(
  initOidcAuthMiddleware({
    OIDC_ISSUER: ISSUER,
    OIDC_CLIENT_ID: CLIENT_ID,
    OIDC_CLIENT_SECRET: CLIENT_SECRET,
    OIDC_AUTH_SECRET: APP_SECRET,
    OIDC_REDIRECT_URI: `${APP_URL}/callback`,
    OIDC_AUTH_EXTERNAL_URL: APP_URL,
    ...(SCOPE && { OIDC_SCOPES: SCOPE }),
  }),
)
app.get('/callback', (c) => {
  c.set('oidcClaimsHook', async (_before, { sub, email, groups } = {}) => ({ sub, email, groups }))
  return processOAuthCallback(c)
})
app.get('/login', oidcAuthMiddleware(), (c) => c.redirect('/'))
app.get('/', async (c) => {
  const user = await getAuth(c)
  return c.json({ sub: user?.sub, email: user?.email || undefined, groups: user?.groups })
})
serve({ fetch: app.fetch, port: Number(PORT), hostname: '127.0.0.1' })
