// Not run: it follows the documentation or the source of the application. Redirect URI: your application's. It asks
// for openid profile groups. Supabase takes the database role from the claim `role`: add it in code, `claims: async ()
// => ({ role: 'authenticated' })`, or in the people file. In the dashboard, Authentication, Third-Party Auth, add the
// issuer, which must be https. In policies, auth.jwt()->>'sub' is the user's id. The application hands on the ID
// token, which lasts 15 minutes, and gets the next one by the refresh token.
import { createClient } from '@supabase/supabase-js'

/** Of the last sign-in or refresh. */
let idToken: string

export const takeIdToken = (token: string): void => {
  idToken = token
}
export const supabase = createClient('https://project.supabase.co', 'publishable key', {
  accessToken: async () => idToken,
})
