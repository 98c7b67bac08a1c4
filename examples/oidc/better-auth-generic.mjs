// Better Auth 1.7.5 with its plugin for generic OAuth.
// Redirect URI: /api/auth/callback/countersign. Asks for its scopes. Without an e-mail address: email_not_found.
import { createServer } from 'node:http'
import { betterAuth } from 'better-auth'
import { fromNodeHeaders, toNodeHandler } from 'better-auth/node'
import { genericOAuth } from 'better-auth/plugins'

const { ISSUER, CLIENT_ID, CLIENT_SECRET, APP_URL, APP_SECRET, PORT, SCOPE } = process.env

/** By account id. */
const groupsOf = new Map()

const auth = betterAuth({
  baseURL: APP_URL,
  secret: APP_SECRET,
  plugins: [
    genericOAuth({
      config: [
        {
          providerId: 'countersign',
          clientId: CLIENT_ID,
          clientSecret: CLIENT_SECRET,
          discoveryUrl: `${ISSUER}/.well-known/openid-configuration`,
          scopes: SCOPE?.split(' ') ?? ['openid', 'profile', 'email'],
          mapProfileToUser: ({ sub, groups }) => void groupsOf.set(sub, groups),
        },
      ],
    }),
  ],
})

const handler = toNodeHandler(auth)
createServer(async (request, response) => {
  if (request.url?.startsWith('/api/auth/')) return void handler(request, response)
  const headers = fromNodeHeaders(request.headers)
  const session = await auth.api.getSession({ headers })
  const [account] = session ? await auth.api.listUserAccounts({ headers }) : []
  const { accountId: sub } = account ?? {}
  response.end(JSON.stringify({ sub, email: session?.user.email, groups: groupsOf.get(sub) }))
}).listen(Number(PORT), '127.0.0.1')
