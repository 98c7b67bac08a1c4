// With `npm install openid-client`. For an issuer on localhost, add a last argument to discovery():
// { execute: [client.allowInsecureRequests] }
import * as client from 'openid-client'

const issuer = process.env.ISSUER ?? 'https://auth.example'
const config = await client.discovery(new URL(issuer), 'tulip-cli', undefined, client.None())
const asked = await client.initiateDeviceAuthorization(config, { scope: 'openid profile offline_access' })
console.error(`Open ${asked.verification_uri} and type ${asked.user_code}`)
const tokens = await client.pollDeviceAuthorizationGrant(config, asked)
console.log(tokens.claims().name)
