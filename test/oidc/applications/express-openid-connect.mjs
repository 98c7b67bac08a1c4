import express from 'express'
import { auth } from 'express-openid-connect'

const { ISSUER, CLIENT_ID, CLIENT_SECRET, APP_URL, APP_SECRET, PORT } = process.env

const app = express()
app.use(
  auth({
    issuerBaseURL: ISSUER,
    baseURL: APP_URL,
    clientID: CLIENT_ID,
    clientSecret: CLIENT_SECRET,
    secret: APP_SECRET,
    authRequired: false,
    authorizationParams: { response_type: 'code' },
  }),
)
app.get('/', ({ oidc }, response) => void response.json({ sub: oidc.user?.sub, email: oidc.user?.email }))
app.listen(Number(PORT), '127.0.0.1')
