import { signInPath } from '../../shared/page-names.ts'
import type { IssuerContent, ShownDevice, ShownWallet } from '../../shared/page-values.ts'
import { issuerTexts } from '../../shared/texts/pages.ts'
import { CodeField } from '../element/code-field.ts'
import { describeDevice } from './device.ts'
import { byId, element, fill, showOnly, withExact } from './dom.ts'
import { openPage } from './open-page.ts'
import { copyButton, type Who, whoView } from './who.ts'

/**
 * The page of the OpenID Connect issuer: consent, a code of a device, sign-out, or an ending. A script sends the
 * answer: redirects of a form count against the page's own policy.
 */

/** An ending: what the page says, and a link or a button for each way on. */
interface Ending {
  readonly sign: 'yes' | 'no' | 'time' | 'stop'
  readonly title: string
  readonly text: string
  /** The part of the text that a translation of the page must not change. */
  readonly exact?: string
  /** Whose account it is about. */
  readonly who?: Who
  /** For the developers of an application that sent a wrong request. */
  readonly detail?: string
  readonly ways: readonly HTMLElement[]
}

const { words, values } = await openPage<'issuer'>(issuerTexts, { readsLocales: true })
const { appName: site, content } = values
const client = 'client' in content ? content.client : undefined
const notice = byId('notice')

/** Time in ms for which a decision is in view before its buttons are live. Two clicks of a double click are closer. */
const seenMs = 700
let isAnswered = false
let retry = (): void => location.reload()

byId('retry-button').addEventListener('click', () => retry())
// As it was when the user left it: answered.
addEventListener('pageshow', ({ persisted }) => persisted && location.reload())

if (content.kind === 'consent') showConsent(content)
else if (content.kind === 'logout') showLogout(content)
else if (content.kind === 'device-code') showCodeForm()
else showEnding(endingOf(content))
document.body.toggleAttribute('data-waiting', false)

/** Content of a page without a question. */
function endingOf(content: Exclude<IssuerContent, { kind: 'consent' | 'logout' | 'device-code' }>): Ending {
  if (content.kind === 'signed-out') return signedOut()
  if (content.kind === 'device-direct') return direct(content)
  if (content.kind === 'not-for-account') return notForAccount(content)
  if (content.kind === 'over') {
    const [title, text] = [words.say('issuer.over.title'), words.say('issuer.over.text')]
    return { sign: 'time', title, text, ways: [wayBack()] }
  }
  const title = words.say('issuer.error.title')
  const again = wayOn(words.say('task.retry'), () => location.reload())
  if (content.kind === 'failure') {
    return { sign: 'stop', title, text: words.notice(content.reason), ways: [again] }
  }
  if (content.unreachable !== undefined) {
    const text = words.say('issuer.unreachable.text', { host: content.unreachable })
    return { sign: 'stop', title, text, exact: content.unreachable, ways: [again, wayBack()] }
  }
  const text =
    client === undefined ? words.say('issuer.error.unknown') : words.say('issuer.error.text', { client: client.name })
  const detail = [content.error, ...(content.sent === undefined ? [] : [content.sent])].join(' · ')
  return { sign: 'stop', title, text, detail, ways: [wayBack()] }
}

function showConsent(content: IssuerContent & { kind: 'consent' }): void {
  const { client, host, documentHost, scopes, scopeWords, wallet, sessionId, signIn, device } = content
  const section = byId('consent')
  const { name, policy, terms } = client
  const title = words.say(device === undefined ? 'issuer.title' : 'issuer.code.consent', { client: name })
  // Letters of any alphabet.
  fill(section, 'letter', /[\p{L}\p{N}]/u.exec(name)?.[0].toLocaleUpperCase(words.language))
  fill(section, 'title', title)
  fill(
    section,
    'document',
    documentHost && words.say('issuer.document', { host: documentHost, site }),
    documentHost ?? '',
  )
  const place = host === undefined ? words.say('issuer.device') : words.say('issuer.host', { host })
  fill(section, 'place', place, host ?? '')
  if (device !== undefined) showDevice(section, device)
  showWallet(section, wallet)
  fill(section, 'gets', words.say('issuer.gets', { client: name }))
  byId<HTMLAnchorElement>('other-wallet-link').href = signIn
  const list = byId('scopes')
  for (const item of list.querySelectorAll<HTMLElement>('li')) item.hidden = !scopes.includes(item.dataset.scope ?? '')
  // The scopes of resources, whose addresses are behind a space. What lasts longest comes last.
  const atResources = scopes.filter((each) => each.includes(' '))
  const items = atResources.map((each) => {
    const [scope = '', resource = ''] = each.split(' ')
    // English on a page from right to left keeps its order.
    const its = scopeWords?.[each]
    const said = words.say('issuer.scope.at', { scope: its ?? scope, resource })
    // The address first: a scope can be a part of it.
    const text = withExact(said, its === undefined ? [resource, scope] : [resource])
    return element('li', '', element('bdi', '', ...text))
  })
  list.lastElementChild?.before(...items)
  const papers = [policy && paper('issuer.policy', policy), terms && paper('issuer.terms', terms)]
  byId('papers').append(...papers.filter((each) => each !== undefined))
  open(section, title)
  const shown = { sessionId, scopes, code: device?.code }
  decideBy({ 'allow-button': { allow: true, ...shown }, 'decline-button': { allow: false, ...shown } })
}

/** A link to read before the decision, which stays open. */
function paper(text: 'issuer.policy' | 'issuer.terms', href: string): HTMLElement {
  return Object.assign(element('a', 'quiet', words.say(text)), { href, target: '_blank', rel: 'noopener noreferrer' })
}

/** The device, in place of where a redirect leads. */
function showDevice(section: HTMLElement, { code, ip, userAgent, sameNetwork }: ShownDevice): void {
  fill(section, 'place', words.say('issuer.code.place'))
  fill(section, 'code', `${code.slice(0, 4)}-${code.slice(4)}`)
  fill(section, 'program', describeDevice(userAgent, words))
  fill(section, 'ip', ip)
  const network = sameNetwork === undefined ? '' : words.say(sameNetwork ? 'issuer.code.near' : 'issuer.code.far')
  fill(section, 'network', network)
  section.toggleAttribute('data-far', sameNetwork === false)
  for (const id of ['device', 'question']) byId(id).hidden = false
}

function showCodeForm(): void {
  const [error, button] = [byId('code-error'), byId('code-button')]
  const field = new CodeField({ describedBy: error.id, isOfDevice: true, onCode: (code) => void enter(code) })
  field.label.textContent = words.say('issuer.code.label')
  error.before(field.form)
  open(byId('device-code'), words.say('issuer.code.title'))
  field.focus()

  async function enter(typed: string): Promise<void> {
    field.isReadOnly = true
    button.ariaBusy = 'true'
    error.textContent = ''
    const { redirectTo, code } = await send({ code: typed })
    if (code === undefined) return location.replace(redirectTo)
    field.isReadOnly = false
    button.ariaBusy = 'false'
    const isWrong = code === 'INVALID_REQUEST'
    if (isWrong) field.empty(true)
    error.textContent = isWrong ? words.say('issuer.code.wrong') : complaint(code)
    field.focus()
  }
}

function showLogout({ wallet, ticket }: IssuerContent & { kind: 'logout' }): void {
  const section = byId('logout')
  showWallet(section, wallet)
  if (client?.home !== undefined) byId<HTMLAnchorElement>('cancel-link').href = client.home
  open(section, words.say('issuer.logout.title'))
  decideBy({ 'logout-button': { ticket } })
}

function notForAccount(content: IssuerContent & { kind: 'not-for-account' }): Ending {
  const { client, wallet, sessionId, signIn, code } = content
  const title = words.say('issuer.not-for-account.title')
  const text = words.say('issuer.not-for-account.text', { client: client.name })
  const back = wayOn(
    words.say('issuer.back-to', { client: client.name }),
    () => void answer({ allow: false, sessionId, code }, back),
  )
  const copy = copyButton(wallet, words.say('issuer.copy'), words.say('issuer.copied'))
  const ways = [...copy, wayOn(words.say('issuer.other-wallet'), signIn), back]
  const [adapterId = '', address] = wallet.split(/:(.*)/s)
  return { sign: 'no', title, text, who: { adapterId, address }, ways }
}

/** A sign-in with another device does not sign in a third one. */
function direct({ client, signIn }: IssuerContent & { kind: 'device-direct' }): Ending {
  const title = words.say('issuer.code.direct.title')
  const text = words.say('issuer.code.direct.text', { client: client.name })
  return { sign: 'no', title, text, ways: [wayOn(words.say('issuer.code.direct.button'), signIn)] }
}

function showWallet(section: HTMLElement, wallet: ShownWallet): void {
  section.querySelector('[data-slot=wallet]')?.replaceWith(whoView(wallet, words))
}

function signedOut(): Ending {
  const title = words.say('issuer.signed-out')
  const signIn = wayOn(words.say('issuer.sign-in'), `${values.basePath}${signInPath}`)
  const ways = client?.home === undefined ? [signIn] : [wayBack(), signIn]
  return { sign: 'yes', title, text: words.say('issuer.signed-out.text', { site }), ways }
}

function showEnding({ sign, title, text, exact = '', who, detail, ways }: Ending): void {
  const section = byId('ending')
  section.dataset.sign = sign
  fill(section, 'title', title)
  fill(section, 'text', text, exact)
  fill(section, 'detail', detail)
  byId('who').hidden = who === undefined
  if (who !== undefined) byId('who').replaceChildren(whoView(who, words))
  fill(section, 'place', words.join(location.host, words.time(Date.now())))
  for (const [index, way] of ways.entries()) way.className = `button wide ${index === 0 ? 'primary' : 'plain'}`
  byId('ways').replaceChildren(...ways)
  open(section, title)
}

/** The way back to the application, or else to where the browser came from, or else to the user's account. */
function wayBack(): HTMLElement {
  if (client?.home !== undefined) return wayOn(words.say('issuer.back-to', { client: client.name }), client.home)
  if (history.length > 1) return wayOn(words.say('issuer.back'), () => history.back())
  return wayToAccount()
}

function wayToAccount(): HTMLElement {
  return wayOn(words.say('issuer.account'), values.accountPath)
}

function wayOn(text: string, target: string | (() => void)): HTMLElement {
  if (typeof target === 'string') return Object.assign(element('a', '', text), { href: target })
  const button = Object.assign(element('button', '', text), { type: 'button' })
  button.addEventListener('click', target)
  return button
}

/** Shows a section in place of the one before it. */
function open(section: HTMLElement, title: string): void {
  document.title = `${title} · ${site}`
  showOnly(section)
}

/**
 * Makes the buttons of a decision live once the page has been in view for a moment: a double click that began on
 * another page, or in a window that has just closed above this one, decides nothing.
 */
function decideBy(inputs: Readonly<Record<string, object>>): void {
  const buttons = Object.entries(inputs).map(([id, input]) => ({ button: byId(id), input }))
  // Not `disabled`, which would take the focus off a button each time that the window comes back.
  const enable = (isLive: boolean): void => {
    for (const { button } of buttons) button.ariaDisabled = String(!isLive)
  }
  let timer: ReturnType<typeof setTimeout> | undefined
  const wait = (): void => {
    clearTimeout(timer)
    enable(false)
    if (document.visibilityState === 'visible') timer = setTimeout(() => enable(!isAnswered), seenMs)
  }
  document.addEventListener('visibilitychange', wait)
  addEventListener('focus', wait)
  wait()
  for (const { button, input } of buttons) {
    button.addEventListener('click', () => {
      if (button.ariaDisabled === 'true') return
      isAnswered = true
      enable(false)
      void answer(input, button)
    })
  }
}

async function answer(input: object, button: HTMLElement): Promise<void> {
  notice.hidden = true
  button.ariaBusy = 'true'
  const { redirectTo, code } = await send(input)
  if (code !== undefined) {
    button.ariaBusy = 'false'
    complain(code, () => void answer(input, button))
  } else if (redirectTo === '') {
    showEnding('ticket' in input ? signedOut() : decided(input))
  } else if (/^https?:$/.test(new URL(redirectTo, location.href).protocol)) {
    location.replace(redirectTo)
  } else {
    // An application opens, and this page stays.
    showEnding(opened(input, redirectTo))
    location.assign(redirectTo)
  }
}

/** Sends an answer. Resolves with where it leads, or with the reason of a failure. */
async function send(input: object): Promise<{ readonly redirectTo: string; readonly code?: string }> {
  const request = { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify(input) }
  const response = await fetch(location.pathname, request).catch(() => undefined)
  if (response === undefined) return { redirectTo: '', code: 'NETWORK' }
  // A proxy can answer with a page.
  const { redirectTo = '', code } = await response.json().catch(() => ({}))
  return response.ok ? { redirectTo } : { redirectTo, code: /^[A-Z_]+$/.test(code) ? code : 'INTERNAL' }
}

/** Says why an answer did not arrive. An outdated answer is not sent again: the page is loaded anew. */
function complain(code: string, again: () => void): void {
  const isOld = code === 'INVALID_REQUEST'
  retry = isOld ? () => location.reload() : again
  fill(notice, 'notice', isOld ? words.say('issuer.old') : complaint(code))
  notice.hidden = false
}

function complaint(code: string): string {
  return code === 'NETWORK_MISMATCH' ? words.say('issuer.code.elsewhere') : words.notice(code)
}

/** A decision on a code, which its device learns by itself. */
function decided(input: object): Ending {
  const name = client?.name ?? site
  if ('allow' in input && input.allow === true) {
    const [title, text] = [words.say('issuer.code.done.title'), words.say('issuer.code.done.text', { client: name })]
    return { sign: 'yes', title, text, ways: [wayToAccount()] }
  }
  return declined(name, wayToAccount())
}

function declined(client: string, way: HTMLElement): Ending {
  const [title, text] = [words.say('issuer.declined.title'), words.say('issuer.declined.text', { client })]
  return { sign: 'no', title, text, ways: [way] }
}

/** An answer that an application on the device gets. */
function opened(input: object, address: string): Ending {
  const name = client?.name ?? site
  if ('allow' in input && input.allow === false) {
    return declined(name, wayOn(words.say('issuer.back-to', { client: name }), address))
  }
  const way = wayOn(words.say('issuer.opened.link', { client: name }), address)
  const title = words.say('issuer.opened.title', { client: name })
  return { sign: 'yes', title, text: words.say('issuer.opened.text'), ways: [way] }
}
