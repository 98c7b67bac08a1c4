// Better Auth 1.7.5 with @better-auth/sso.
// Redirect URI: /api/auth/sso/callback/countersign. Asks for openid email profile offline_access.
// Without an e-mail address: invalid_provider.
import { createServer } from 'node:http'
import { sso } from '@better-auth/sso'
import { betterAuth } from 'better-auth'
import { fromNodeHeaders, toNodeHandler } from 'better-auth/node'

const { ISSUER, CLIENT_ID, CLIENT_SECRET, APP_URL, APP_SECRET, PORT, SCOPE } = process.env

/** By user id. */
const groupsOf = new Map()

const auth = betterAuth({
  baseURL: APP_URL,
  secret: APP_SECRET,
  trustedOrigins: [ISSUER],
  plugins: [
    sso({
      provisionUser: async ({ user, userInfo }) => void groupsOf.set(user.id, userInfo.groups),
      defaultSSO: [
        {
          providerId: 'countersign',
          domain: 'users.example',
          issuer: ISSUER,
          oidcConfig: {
            issuer: ISSUER,
            discoveryEndpoint: `${ISSUER}/.well-known/openid-configuration`,
            clientId: CLIENT_ID,
            clientSecret: CLIENT_SECRET,
            pkce: true,
            ...(SCOPE && { scopes: SCOPE.split(' ') }),
            mapping: { id: 'sub', email: 'email', name: 'name', extraFields: { groups: 'groups' } },
          },
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
  const { id, email } = session?.user ?? {}
  response.end(JSON.stringify({ sub: account?.accountId, email, groups: groupsOf.get(id) }))
}).listen(Number(PORT), '127.0.0.1')
