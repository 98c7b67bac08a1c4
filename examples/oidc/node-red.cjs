// Node-RED 5.0.7 and passport-openidconnect: the settings of an editor that is for users of the issuer. Redirect URI:
// /auth/strategy/callback. Asks for openid, and its scope. No PKCE: the client has "pkce": "optional". Groups give
// rights, in `verify`. Without "groups" at the client, anyone with a wallet gets the editor, unless `users` says
// otherwise.
const { Strategy } = require('passport-openidconnect')

const { ISSUER, CLIENT_ID, CLIENT_SECRET, APP_URL, PORT } = process.env

/** By user id, as of the last sign-in. */
const permissions = new Map()

module.exports = {
  uiHost: '127.0.0.1',
  uiPort: Number(PORT),
  userDir: process.cwd(),
  adminAuth: {
    type: 'strategy',
    strategy: {
      name: 'openidconnect',
      label: 'Sign in with your wallet',
      strategy: Strategy,
      options: {
        issuer: ISSUER,
        authorizationURL: `${ISSUER}/api/auth/oidc/authorize`,
        tokenURL: `${ISSUER}/api/auth/oidc/token`,
        userInfoURL: `${ISSUER}/api/auth/oidc/userinfo`,
        clientID: CLIENT_ID,
        clientSecret: CLIENT_SECRET,
        callbackURL: `${APP_URL}/auth/strategy/callback`,
        scope: ['groups'],
        // With nine parameters it reads userinfo.
        verify(_issuer, { id, _json }, _idProfile, _context, _idToken, _accessToken, _refreshToken, _params, done) {
          permissions.set(id, _json.groups?.includes('admins') ? '*' : 'read')
          done(null, { username: id })
        },
      },
    },
    users: async (username) => ({ username, permissions: permissions.get(username) ?? 'read' }),
  },
}
