import type { ChooserTexts } from '../../shared/texts/chooser.ts'
import { dispatch, part } from '../client/custom-element.ts'
import type { AppAddress, WalletApp } from './found.ts'
import { marks } from './wallet-logos.ts'

/**
 * Wallets whose own browser a link can open. The forms are those that their makers publish, as docs/wallets.md says.
 * None promises that a fragment arrives, so link addresses without one, such as that of a hand-over. None of the links
 * says whether the app is installed: those that begin with https lead to a page of the wallet's maker if it is not, the
 * others do nothing.
 */
export const walletApps: readonly WalletApp[] = [
  {
    id: 'nimiq-pay',
    name: 'Nimiq Pay',
    icon: marks['nimiq-pay'],
    adapterIds: ['nimiq', 'ethereum'],
    store: 'https://www.nimiq.com/nimiq-pay/',
    linkTo: (url) => `nimiqpay://miniapp?url=${encodeURIComponent(absolute(url).href)}`,
  },
  {
    id: 'metamask',
    name: 'MetaMask',
    icon: marks.metamask,
    adapterIds: ['ethereum'],
    store: 'https://metamask.io/download',
    // Host and path as they are: the form has no place for a scheme, and percent-encoded ones open an empty tab.
    linkTo: (url) => {
      const { host, pathname, search } = absolute(url)
      return `https://link.metamask.io/dapp/${host}${pathname}${search}`
    },
  },
  {
    id: 'phantom',
    name: 'Phantom',
    icon: marks.phantom,
    adapterIds: ['solana', 'ethereum'],
    store: 'https://phantom.com/download',
    linkTo: (url) => `https://phantom.app/ul/browse/${encodedWithReferrer(url)}`,
  },
  {
    id: 'solflare',
    name: 'Solflare',
    icon: marks.solflare,
    adapterIds: ['solana'],
    store: 'https://www.solflare.com/download/',
    linkTo: (url) => `https://solflare.com/ul/v1/browse/${encodedWithReferrer(url)}`,
  },
  {
    id: 'coinbase',
    name: 'Coinbase Wallet',
    icon: marks.coinbase,
    adapterIds: ['ethereum'],
    store: 'https://www.coinbase.com/wallet/downloads',
    linkTo: (url) => `https://go.cb-w.com/dapp?cb_url=${encodeURIComponent(absolute(url).href)}`,
  },
  {
    id: 'trust',
    name: 'Trust Wallet',
    icon: marks.trust,
    adapterIds: ['ethereum'],
    store: 'https://trustwallet.com/download',
    // 60 is Ethereum's coin type (SLIP-44).
    linkTo: (url) => `https://link.trustwallet.com/open_url?coin_id=60&url=${encodeURIComponent(absolute(url).href)}`,
  },
]

/** The address with its origin as referrer, which both makers of the form ask for. */
function encodedWithReferrer(url: string): string {
  const { href, origin } = absolute(url)
  return `${encodeURIComponent(href)}?ref=${encodeURIComponent(origin)}`
}

/**
 * Throws a TypeError for anything but an absolute http or https address: a link must never open another scheme in a
 * wallet.
 */
function absolute(url: string): URL {
  const parsed = new URL(url)
  if (!/^https?:$/.test(parsed.protocol))
    throw new TypeError(`${parsed.protocol} addresses cannot be opened in a wallet`)
  return parsed
}

/**
 * How long an address that was made for one tap is offered for another, in milliseconds. A hand-over ticket lasts a
 * minute.
 */
const addressLifeMs = 45_000

/**
 * The entry of a wallet's app. With an address it is a link, because phones open apps by links that users tap. Without
 * one it is a button, which makes the address, goes there, and becomes a link for a second tap.
 */
export class AppLink {
  readonly item = document.createElement('li')
  readonly #chooser: HTMLElement
  readonly #icon = iconPlace()
  readonly #note = part('p', 'note')
  #control: HTMLAnchorElement | HTMLButtonElement | undefined
  #made: string | undefined
  #forget: ReturnType<typeof setTimeout> | undefined
  #show = (): void => {}

  /** `chooser` is the element that dispatches its events. */
  constructor(chooser: HTMLElement) {
    this.#chooser = chooser
    this.#note.setAttribute('role', 'status')
    this.item.append(this.#note)
  }

  show(app: WalletApp, address: AppAddress | undefined, texts: ChooserTexts, isDisabled: boolean): void {
    this.#show = () => this.show(app, address, texts, isDisabled)
    const url = typeof address === 'string' ? address : this.#made
    const control = this.#use(url === undefined || isDisabled ? 'button' : 'a')
    if (this.#icon.dataset.app !== app.id) showIcon(this.#icon, app)
    this.#icon.dataset.app = app.id
    control.replaceChildren(
      this.#icon,
      texts.openIn.replace('{name}', () => app.name),
    )
    if (control instanceof HTMLAnchorElement) {
      control.href = app.linkTo(url as string)
      control.onclick = () => this.#opened(app, texts)
    } else {
      setFlag(control, 'aria-disabled', isDisabled)
      control.onclick = () => {
        if (!isDisabled && typeof address === 'function') void this.#make(app, address, texts)
      }
    }
  }

  /** Forgets the address that was made, and what was said about it. */
  reset(): void {
    clearTimeout(this.#forget)
    this.#made = undefined
    this.#note.textContent = ''
  }

  #use(name: 'a' | 'button'): HTMLAnchorElement | HTMLButtonElement {
    if (this.#control?.localName === name) return this.#control
    const control = part(name, 'app')
    if (control instanceof HTMLButtonElement) control.type = 'button'
    const root = this.item.getRootNode() as Document | ShadowRoot
    const hadFocus = this.#control !== undefined && root.activeElement === this.#control
    this.#control?.remove()
    this.#control = control
    this.item.prepend(control)
    if (hadFocus) control.focus()
    return control
  }

  async #make(app: WalletApp, makeAddress: () => string | Promise<string>, texts: ChooserTexts): Promise<void> {
    this.#note.textContent = texts.opening
    try {
      const address = await makeAddress()
      const link = app.linkTo(address)
      this.#made = address
      this.#forget = setTimeout(() => {
        this.reset()
        this.#show()
      }, addressLifeMs)
      this.#show()
      this.#opened(app, texts)
      location.assign(link)
    } catch (error) {
      this.reset()
      this.#note.textContent = texts.openFailed
      this.#show()
      dispatch(this.#chooser, 'countersign:link-error', { app, error })
    }
  }

  #opened(app: WalletApp, texts: ChooserTexts): void {
    this.#note.textContent = texts.openAgain
    dispatch(this.#chooser, 'countersign:open-in', { app })
  }
}

/** The entry of a wallet's app for people who do not have it: a link to where its maker has it, in a new tab. */
export function storeLink(app: WalletApp): HTMLElement {
  const { store = '', name } = app
  const link = Object.assign(document.createElement('a'), { href: store, target: '_blank', rel: 'noopener' })
  const names = Object.assign(document.createElement('span'), { className: 'names' })
  const about = Object.assign(document.createElement('span'), {
    className: 'about',
    textContent: new URL(store).hostname,
  })
  names.append(Object.assign(part('bdi', 'store'), { textContent: name }), about)
  const icon = iconPlace()
  // The part is for wallets and apps that are here.
  icon.removeAttribute('part')
  showIcon(icon, app)
  link.append(icon, names)
  const item = document.createElement('li')
  item.append(link)
  return item
}

/** Sets an ARIA attribute to true, or removes it. Not by its property, which older browsers do not have. */
export function setFlag(element: HTMLElement, name: `aria-${string}`, isSet: boolean): void {
  if (isSet) element.setAttribute(name, 'true')
  else element.removeAttribute(name)
}

/** The place of an icon. Screen readers leave it out, because the name follows. */
export function iconPlace(): HTMLElement {
  const place = part('span', 'icon')
  place.className = 'icon'
  setFlag(place, 'aria-hidden', true)
  return place
}

/** Shows the icon of a wallet or an app; until it has loaded, or without one, the first letter of the name. */
export function showIcon(place: HTMLElement, { icon, name }: { readonly icon?: string; readonly name: string }): void {
  const [letter = ''] = name
  place.textContent = letter.toLocaleUpperCase()
  if (icon === undefined) return
  const image = document.createElement('img')
  image.alt = ''
  image.addEventListener('load', () => place.replaceChildren(image))
  image.src = icon
}
