// Auth.js (@auth/express 0.12.3) with Express 5.
// Redirect URI: /auth/callback/countersign. Asks for openid profile email; an e-mail address is optional.
import { ExpressAuth, getSession } from '@auth/express'
import express from 'express'

const { ISSUER, CLIENT_ID, CLIENT_SECRET, APP_SECRET, PORT, SCOPE } = process.env

/** By user id. */
const groupsOf = new Map()

const config = {
  providers: [
    {
      id: 'countersign',
      name: 'Wallet',
      type: 'oidc',
      issuer: ISSUER,
      clientId: CLIENT_ID,
      clientSecret: CLIENT_SECRET,
      ...(SCOPE && { authorization: { params: { scope: SCOPE } } }),
    },
  ],
  secret: APP_SECRET,
  trustHost: true,
  callbacks: {
    // Without these the session has no id of the user.
    jwt: ({ token, profile }) => (profile ? { ...token, sub: profile.sub } : token),
    session: ({ session, token }) => ({ ...session, user: { ...session.user, id: token.sub } }),
  },
  events: { signIn: ({ profile }) => void groupsOf.set(profile.sub, profile.groups) },
}

const app = express()
app.set('trust proxy', true)
app.use('/auth', ExpressAuth(config))
app.get('/', async (request, response) => {
  const session = await getSession(request, config)
  const { id, email } = session?.user ?? {}
  response.json({ sub: id, email, groups: groupsOf.get(id) })
})
app.listen(Number(PORT), '127.0.0.1')
