// Fastify with @fastify/oauth2 8.3.0.
// Redirect URI: /callback. Asks for its scope; an e-mail address is optional.
import cookie from '@fastify/cookie'
import oauth2 from '@fastify/oauth2'
import { fastify } from 'fastify'

const { ISSUER, CLIENT_ID, CLIENT_SECRET, APP_URL, APP_SECRET, PORT, SCOPE } = process.env

const app = fastify()
await app.register(cookie, { secret: APP_SECRET })
await app.register(oauth2, {
  name: 'wallet',
  credentials: { client: { id: CLIENT_ID, secret: CLIENT_SECRET } },
  discovery: { issuer: ISSUER },
  scope: SCOPE?.split(' ') ?? ['openid', 'profile', 'email'],
  startRedirectPath: '/login',
  callbackUri: `${APP_URL}/callback`,
})
app.get('/callback', async (request, reply) => {
  const { token } = await app.wallet.getAccessTokenFromAuthorizationCodeFlow(request)
  const { sub, email, groups } = await app.wallet.userinfo(token)
  return await reply
    .setCookie('user', JSON.stringify({ sub, email, groups }), {
      path: '/',
      httpOnly: true,
      secure: true,
      signed: true,
    })
    .redirect('/')
})
app.get('/', ({ cookies }) => JSON.parse(app.unsignCookie(cookies.user ?? '').value ?? '{}'))
await app.listen({ port: Number(PORT), host: '127.0.0.1' })
