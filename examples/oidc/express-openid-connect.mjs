// express-openid-connect 3.4.0.
// Redirect URI: /callback. Asks for openid profile email; an e-mail address is optional.
// Its default is the implicit flow: hence response_type=code.
import express from 'express'
import { auth } from 'express-openid-connect'

const { ISSUER, CLIENT_ID, CLIENT_SECRET, APP_URL, APP_SECRET, PORT, SCOPE } = process.env

const app = express()
app.use(
  auth({
    issuerBaseURL: ISSUER,
    baseURL: APP_URL,
    clientID: CLIENT_ID,
    clientSecret: CLIENT_SECRET,
    secret: APP_SECRET,
    authRequired: false,
    authorizationParams: { response_type: 'code', ...(SCOPE && { scope: SCOPE }) },
  }),
)
app.get('/', ({ oidc }, response) => {
  const { sub, email, groups } = oidc.user ?? {}
  response.json({ sub, email, groups })
})
app.listen(Number(PORT), '127.0.0.1')
