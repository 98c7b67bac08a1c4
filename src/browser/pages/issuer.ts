import { showBrand } from './brand.ts'
import { byId, element, fill, fillTexts, metaContent } from './dom.ts'
import { chooseWords, languagesOf, readOperatorTexts } from './words.ts'

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

/** Time in ms for which a decision is in view before its buttons are live. Two clicks of a double click are closer. */
const seenMs = 700
let isAnswered = false

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
  enableOnceSeen()
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
  enableOnceSeen()
  byId('allow-button').addEventListener('click', () => void answer({ allow: true, sessionId }))
  byId('decline-button').addEventListener('click', () => void answer({ allow: false, sessionId }))
}

/**
 * Makes the buttons of a decision live once the page has been in view for a moment: a double click that began on
 * another page, or in a window that has just closed above this one, decides nothing.
 */
function enableOnceSeen(): void {
  let timer: ReturnType<typeof setTimeout> | undefined
  const wait = (): void => {
    clearTimeout(timer)
    enable(false)
    if (document.visibilityState === 'visible') timer = setTimeout(() => enable(!isAnswered), seenMs)
  }
  document.addEventListener('visibilitychange', wait)
  addEventListener('focus', wait)
  wait()
}

function enable(isLive: boolean): void {
  for (const button of section.querySelectorAll('button')) button.disabled = !isLive
}

async function answer(input: object): Promise<void> {
  isAnswered = true
  enable(false)
  try {
    const response = await fetch(location.pathname, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(input),
    })
    const { redirectTo, code } = await response.json()
    if (!response.ok) throw new Error(String(code))
    if (redirectTo === '') return showInstead('signed-out')
    if (/^https?:$/.test(new URL(redirectTo, location.href).protocol)) return location.replace(redirectTo)
    // An application opens, and this page stays.
    byId<HTMLAnchorElement>('open-link').href = redirectTo
    showInstead('opened')
    location.assign(redirectTo)
  } catch (error) {
    fill(notice, 'notice', words.notice(error instanceof Error ? error.message : ''))
    notice.hidden = false
  }
}

function showInstead(id: 'signed-out' | 'opened'): void {
  section.hidden = true
  byId(id).hidden = false
  byId(id).querySelector('h1')?.focus()
}
