import { createServer } from 'node:http'
import { sso } from '@better-auth/sso'
import { betterAuth } from 'better-auth'
import { fromNodeHeaders, toNodeHandler } from 'better-auth/node'

const { ISSUER, CLIENT_ID, CLIENT_SECRET, APP_URL, APP_SECRET, PORT } = process.env

const auth = betterAuth({
  baseURL: APP_URL,
  secret: APP_SECRET,
  trustedOrigins: [ISSUER],
  plugins: [
    sso({
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
  response.end(JSON.stringify({ sub: account?.accountId, email: session?.user.email }))
}).listen(Number(PORT), '127.0.0.1')
