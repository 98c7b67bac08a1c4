// passport-openidconnect 0.1.2.
// Redirect URI: /callback. Asks for openid, and its scope. No PKCE: the client has "pkce": "optional".
import express from 'express'
import session from 'express-session'
import passport from 'passport'
import OpenIDConnectStrategy from 'passport-openidconnect'

const { ISSUER, CLIENT_ID, CLIENT_SECRET, APP_URL, APP_SECRET, PORT, SCOPE } = process.env

passport.use(
  new OpenIDConnectStrategy(
    {
      issuer: ISSUER,
      authorizationURL: `${ISSUER}/api/auth/oidc/authorize`,
      tokenURL: `${ISSUER}/api/auth/oidc/token`,
      userInfoURL: `${ISSUER}/api/auth/oidc/userinfo`,
      clientID: CLIENT_ID,
      clientSecret: CLIENT_SECRET,
      callbackURL: `${APP_URL}/callback`,
      ...(SCOPE && { scope: SCOPE.replace('openid ', '') }),
    },
    // With nine parameters it reads userinfo.
    (_issuer, { id, emails, _json }, _idProfile, _context, _idToken, _accessToken, _refreshToken, _params, done) =>
      done(null, { sub: id, email: emails?.[0]?.value, groups: _json.groups }),
  ),
)
passport.serializeUser((user, done) => done(null, user))
passport.deserializeUser((user, done) => done(null, user))

const app = express()
app.set('trust proxy', true)
app.use(session({ secret: APP_SECRET, resave: false, saveUninitialized: false, cookie: { secure: true } }))
app.use(passport.session())
app.get('/login', passport.authenticate('openidconnect'))
app.get('/callback', passport.authenticate('openidconnect', { successRedirect: '/', failureRedirect: '/failed' }))
app.get('/', ({ user = {} }, response) => void response.json(user))
app.listen(Number(PORT), '127.0.0.1')
