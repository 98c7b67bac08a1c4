import { showBrand } from './brand.ts'
import { byId, element, fill, fillTexts, metaContent } from './dom.ts'
import { chooseWords, languagesOf, readOperatorTexts } from './texts/words.ts'

/**
 * The page of the OpenID Connect issuer: consent, sign-out, or an error. A script sends the answer: redirects of a form
 * count against the page's own policy.
 */

/** What the server filled in. */
type Content =
  | {
      readonly kind: 'consent'
      readonly client: string
      readonly host?: string
      readonly scopes: readonly string[]
      readonly wallet: string
      readonly sessionId: string
    }
  | { readonly kind: 'logout'; readonly ticket: string }
  | { readonly kind: 'signed-out' }
  | { readonly kind: 'error'; readonly error: string; readonly description: string }
  | { readonly kind: 'failure'; readonly reason: string }

const content = JSON.parse(metaContent('countersign-content')) as Content
const words = chooseWords(languagesOf(new URL(location.href)), readOperatorTexts(metaContent('countersign-texts')))
const section = byId(content.kind)
const notice = byId('notice')

/** Scopes of the issuer. Any other is of a resource, whose address stands behind a space. */
const known = ['openid', 'offline_access', 'profile', 'wallet', 'email', 'groups'] as const

document.documentElement.lang = words.language
document.documentElement.dir = words.direction
fillTexts((key) => words.text(key))
showBrand()
byId('retry-button').addEventListener('click', () => location.reload())
// As it was when the user left it: answered.
addEventListener('pageshow', ({ persisted }) => persisted && location.reload())

if (content.kind === 'consent') showConsent(content)
if (content.kind === 'logout') {
  byId('logout-button').addEventListener('click', () => void answer({ ticket: content.ticket }))
}
if (content.kind === 'error') {
  fill(section, 'error', content.error)
  fill(section, 'description', content.description)
}
if (content.kind === 'failure') {
  fill(section, 'text', words.notice(content.reason))
  byId('again-button').addEventListener('click', () => location.reload())
}
section.hidden = false
document.body.toggleAttribute('data-waiting', false)
section.querySelector('h1')?.focus()

function showConsent({ client, host, scopes, wallet, sessionId }: Content & { kind: 'consent' }): void {
  fill(section, 'title', words.say('issuer.title', { client }))
  fill(section, 'place', host === undefined ? words.say('issuer.device') : words.say('issuer.host', { host }))
  fill(section, 'wallet', wallet)
  byId('scopes').append(
    ...scopes.map((each) => {
      const own = known.find((scope) => scope === each)
      const [scope = '', resource = ''] = each.split(' ')
      return element(
        'li',
        '',
        own ? words.say(`issuer.scope.${own}`) : words.say('issuer.scope.at', { scope, resource }),
      )
    }),
  )
  byId('allow-button').addEventListener('click', () => void answer({ allow: true, sessionId }))
  byId('decline-button').addEventListener('click', () => void answer({ allow: false, sessionId }))
}

async function answer(input: object): Promise<void> {
  for (const button of section.querySelectorAll('button')) button.disabled = true
  try {
    const response = await fetch(location.pathname, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(input),
    })
    const { redirectTo, code } = await response.json()
    if (!response.ok) throw new Error(String(code))
    if (redirectTo !== '') return location.replace(redirectTo)
    section.hidden = true
    byId('signed-out').hidden = false
    byId('signed-out').querySelector('h1')?.focus()
  } catch (error) {
    fill(notice, 'notice', words.notice(error instanceof Error ? error.message : ''))
    notice.hidden = false
  }
}
