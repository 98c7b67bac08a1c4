import { ExpressAuth, getSession } from '@auth/express'
import express from 'express'

const { ISSUER, CLIENT_ID, CLIENT_SECRET, APP_SECRET, PORT } = process.env

const config = {
  providers: [
    {
      id: 'countersign',
      name: 'Wallet',
      type: 'oidc',
      issuer: ISSUER,
      clientId: CLIENT_ID,
      clientSecret: CLIENT_SECRET,
    },
  ],
  secret: APP_SECRET,
  trustHost: true,
  callbacks: {
    // Without these the session has no id of the user.
    jwt: ({ token, profile }) => (profile ? { ...token, sub: profile.sub } : token),
    session: ({ session, token }) => ({ ...session, user: { ...session.user, id: token.sub } }),
  },
}

const app = express()
app.set('trust proxy', true)
app.use('/auth', ExpressAuth(config))
app.get('/', async (request, response) => {
  const session = await getSession(request, config)
  response.json({ sub: session?.user.id, email: session?.user.email })
})
app.listen(Number(PORT), '127.0.0.1')
