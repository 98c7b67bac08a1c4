import { builtInAdapters, isBuiltIn } from '../../shared/adapters.ts'
import { type ChooserTexts, englishTexts } from '../../shared/texts/chooser.ts'
import {
  adoptProperties,
  attachStyledRoot,
  Base,
  define,
  dispatch,
  english,
  part,
  watchProperties,
  write,
} from '../client/custom-element.ts'
import { isPhone } from '../client/page.ts'
import { loadTranslation } from '../client/translation.ts'
import { AppLink, iconPlace, setFlag, showIcon, storeLink, walletApps } from './apps.ts'
import { chooserStyle } from './chooser-style.ts'
import type { AppAddress, CountersignWalletsEvents, FoundWallet, WalletApp, WalletFinder } from './found.ts'

/**
 * `<countersign-wallets>`: lets the user choose a wallet. Lists those that a finder has found, says while more may
 * come, says what to do if there is none, and on phones links to wallets with a browser of their own.
 *
 * {@link defineWalletChooser} registers it. Events: {@link CountersignWalletsEvents}. Parts to style: `status`, `hint`,
 * `wallets`, `wallet`, `icon`, `name`, `about`, `apps`, `apps-title`, `app`, `note`, `help`, `help-title`, `help-text`.
 *
 * Names and icons are the wallets' own claims. They are shown as text and as images, and grant nothing.
 */
export class CountersignWallets extends Base {
  static {
    watchProperties(
      CountersignWallets,
      { apps: walletApps, adapterIds: undefined, selected: undefined, disabled: false, walletHelp: false },
      (element) => element.#show(),
    )
    watchProperties(CountersignWallets, { finder: undefined }, (element) => element.#follow())
  }

  /** The search whose wallets are listed. The page makes it, with `findWallets`, and stops it. */
  declare finder: WalletFinder | undefined
  /** The apps to offer, on phones only. Default: {@link walletApps}. Those that are found in the page are left out. */
  declare apps: readonly WalletApp[]
  /**
   * Adapters that the service, or the order, takes: other apps are left out. Default: all. The finder has an option of
   * its own.
   */
  declare adapterIds: readonly string[] | undefined
  /** Id of the wallet that is marked as the chosen one. */
  declare selected: string | undefined
  /** Whether nothing can be chosen, such as while a wallet asks its user. */
  declare disabled: boolean

  /** Whether it leads people who have no wallet to three of the apps that they can get. Default: no. */
  declare walletHelp: boolean

  #unsubscribe: (() => void) | undefined
  #builtIn: ChooserTexts = englishTexts
  #texts: Partial<ChooserTexts> = {}
  #appAddress: AppAddress | undefined
  #view: View | undefined
  readonly #rows = new Map<string, WalletRow>()
  readonly #links = new Map<string, AppLink>()

  /**
   * Texts of the chooser. Those that are left out are in the language of the page, or of the part of it around the
   * chooser (`lang`), if that is a built-in one when the chooser comes into the page; otherwise English.
   */
  set texts(texts: Partial<ChooserTexts>) {
    this.#texts = texts
    this.#show()
  }

  get texts(): ChooserTexts {
    return { ...this.#builtIn, ...this.#texts }
  }

  /**
   * What wallet apps open. Without it, none are offered. A new address takes the place of the last one in all links.
   */
  set appAddress(address: AppAddress | undefined) {
    this.#appAddress = address
    for (const link of this.#links.values()) link.reset()
    this.#show()
  }

  get appAddress(): AppAddress | undefined {
    return this.#appAddress
  }

  connectedCallback(): void {
    adoptProperties(this)
    this.#view ??= makeView(this)
    void this.#learnLanguage()
    this.#follow()
  }

  /** Loads the texts of the page's language, if some are left out. If that fails, they stay English. */
  async #learnLanguage(): Promise<void> {
    if (Object.keys(englishTexts).every((name) => Object.hasOwn(this.#texts, name))) return
    const texts = await loadTranslation(this.closest('[lang]')?.getAttribute('lang') ?? '')
    if (texts === undefined) return
    this.#builtIn = texts.wallets
    this.#show()
  }

  disconnectedCallback(): void {
    this.#unsubscribe?.()
    this.#unsubscribe = undefined
  }

  #follow(): void {
    this.#unsubscribe?.()
    this.#unsubscribe = this.isConnected ? this.finder?.subscribe(() => this.#show()) : undefined
    this.#show()
  }

  #show(): void {
    const view = this.#view
    if (view === undefined || !this.isConnected) return
    const texts = this.texts
    const wallets = this.finder?.wallets ?? []
    const apps = this.#appsFor(wallets)
    const hasOwn = wallets.some(({ kind }) => kind === 'page')
    const hasOthers = wallets.length + apps.length > 0
    const isLooking = this.finder?.isLooking ?? false
    const none = !hasOthers ? texts.none : isPhone() ? texts.choose : texts.noneButOthers
    say(view.status, hasOwn ? texts.choose : isLooking ? texts.looking : none)
    say(view.hint, hasOwn || apps.length > 0 ? '' : isPhone() ? texts.noneOnPhone : texts.noneOnComputer)
    view.wallets.setAttribute('aria-label', texts.list)
    this.#showWallets(view, wallets, texts)
    this.#showApps(view, apps, texts)
    arrangeApps(view, !hasOwn)
    this.#showHelp(view, !hasOwn, texts)
    // They have their place from the start, so that what is below does not move under the user's finger.
    for (const later of [view.hint, view.help]) later.classList.toggle('unsaid', isLooking)
  }

  #showWallets(view: View, wallets: readonly FoundWallet[], texts: ChooserTexts): void {
    const rows = wallets.map((wallet) => {
      const row = this.#rows.get(wallet.id) ?? new WalletRow((chosen) => this.#choose(chosen))
      this.#rows.set(wallet.id, row)
      const isNameTaken = wallets.some(({ id, name, adapterId }) => {
        return id !== wallet.id && name === wallet.name && adapterId === wallet.adapterId
      })
      row.show(wallet, texts, { isNameTaken, isSelected: wallet.id === this.selected, isDisabled: this.disabled })
      return row.item
    })
    for (const id of this.#rows.keys()) if (!wallets.some((wallet) => wallet.id === id)) this.#rows.delete(id)
    arrange(view.wallets, rows)
  }

  #showApps(view: View, apps: readonly WalletApp[], texts: ChooserTexts): void {
    say(view.appsTitle, texts.apps)
    view.apps.hidden = apps.length === 0
    const links = apps.map((app) => {
      const link = this.#links.get(app.id) ?? new AppLink(this)
      this.#links.set(app.id, link)
      link.show(app, this.#appAddress, texts, this.disabled)
      return link.item
    })
    arrange(view.appList, links)
  }

  #showHelp(view: View, isWanted: boolean, texts: ChooserTexts): void {
    const apps = this.walletHelp && isWanted ? this.apps.filter((app) => app.store && this.#takes(app)).slice(0, 3) : []
    view.help.hidden = apps.length === 0
    if (view.help.hidden) return
    say(view.helpTitle, texts.noWallet)
    say(view.helpText, texts.getWallet)
    if (view.helpList.childElementCount === 0) view.helpList.append(...apps.map(storeLink))
  }

  #takes({ adapterIds }: WalletApp): boolean {
    return this.adapterIds === undefined || adapterIds.some((id) => this.adapterIds?.includes(id))
  }

  /** On a phone, a wallet that is in the page is most likely the app that opened it. */
  #appsFor(wallets: readonly FoundWallet[]): readonly WalletApp[] {
    if (this.#appAddress === undefined || !isPhone()) return []
    const isHere = (app: WalletApp) => wallets.some(({ name, kind }) => kind === 'page' && name === app.name)
    return this.apps.filter((app) => !isHere(app) && this.#takes(app))
  }

  #choose(wallet: FoundWallet): void {
    if (!this.disabled) dispatch(this, 'countersign:wallet', { wallet })
  }
}

/** The content of the element's shadow root. */
type View = ReturnType<typeof makeView>

function makeView(host: HTMLElement) {
  const root = attachStyledRoot(host, chooserStyle)
  const view = {
    status: part('p', 'status'),
    hint: part('p', 'hint'),
    wallets: part('ul', 'wallets'),
    apps: part('div', 'apps'),
    appsTitle: part('p', 'apps-title'),
    appList: part('ul', 'app-list'),
    help: part('details', 'help'),
    helpTitle: part('summary', 'help-title'),
    helpText: part('p', 'help-text'),
    helpList: part('ul', 'help-list'),
  }
  view.status.setAttribute('role', 'status')
  // Without it, some screen readers do not call a list without bullets a list.
  for (const list of [view.wallets, view.appList, view.helpList]) list.setAttribute('role', 'list')
  view.appsTitle.id = 'apps-title'
  view.appList.setAttribute('aria-labelledby', view.appsTitle.id)
  view.apps.append(view.appsTitle, view.appList)
  view.help.append(view.helpTitle, view.helpText, view.helpList)
  root.append(view.status, view.wallets, view.apps, view.hint, view.help)
  return view
}

for (const text of Object.values(englishTexts)) english.add(text)

/** Writes a text, and hides the place of an empty one. */
function say(place: HTMLElement, text: string): void {
  write(place, text, (place.getRootNode() as ShadowRoot).host)
  place.hidden = text === ''
}

/**
 * Puts items into a list in their order, without moving those that are in place, because that would take the focus from
 * them.
 */
function arrange(list: HTMLElement, items: readonly HTMLElement[]): void {
  list.hidden = items.length === 0
  for (const child of [...list.children]) if (!items.includes(child as HTMLElement)) child.remove()
  for (const [index, item] of items.entries()) {
    const place = list.children[index]
    if (place !== item) list.insertBefore(item, place ?? null)
  }
}

/**
 * Puts the apps before the wallets, or after them: a phone whose browser has no wallet has one in an app. Moves the one
 * without the focus, which would be lost.
 */
function arrangeApps({ wallets, apps }: View, areFirst: boolean): void {
  const isFirst = apps.nextElementSibling === wallets
  if (apps.hidden || isFirst === areFirst) return
  const hasFocus = (wallets.getRootNode() as ShadowRoot).activeElement?.closest('[part=wallets]') === wallets
  const [moved, other] = hasFocus ? [apps, wallets] : [wallets, apps]
  if (areFirst === (moved === apps)) other.before(moved)
  else other.after(moved)
}

/** Registers `<countersign-wallets>`, unless it is registered already. */
export function defineWalletChooser(): void {
  define('countersign-wallets', CountersignWallets)
}

type EventMap = { [Name in keyof CountersignWalletsEvents]: CustomEvent<CountersignWalletsEvents[Name]> }

declare global {
  interface HTMLElementTagNameMap {
    'countersign-wallets': CountersignWallets
  }
  interface HTMLElementEventMap extends EventMap {}
}

/** How a wallet's entry looks. */
export interface RowState {
  /** Whether another wallet of the same kind has the same name. */
  readonly isNameTaken: boolean
  readonly isSelected: boolean
  readonly isDisabled: boolean
}

/** A wallet's entry in the list: a button with its icon and name. */
export class WalletRow {
  readonly item = document.createElement('li')
  readonly #button = part('button', 'wallet')
  readonly #icon = iconPlace()
  /** Isolates the name, so that it does not change the order of the text around it. */
  readonly #name = part('bdi', 'name')
  readonly #about = part('span', 'about')
  #wallet: FoundWallet | undefined

  constructor(choose: (wallet: FoundWallet) => void) {
    this.#button.type = 'button'
    this.#about.className = 'about'
    const names = document.createElement('span')
    names.className = 'names'
    names.append(this.#name, this.#about)
    this.#button.append(this.#icon, names)
    this.#button.addEventListener('click', () => this.#wallet !== undefined && choose(this.#wallet))
    this.item.append(this.#button)
  }

  show(wallet: FoundWallet, texts: ChooserTexts, { isNameTaken, isSelected, isDisabled }: RowState): void {
    if (wallet.icon !== this.#wallet?.icon || wallet.name !== this.#wallet?.name) showIcon(this.#icon, wallet)
    this.#wallet = wallet
    this.#name.textContent = wallet.name
    this.#about.textContent = aboutOf(wallet, texts, isNameTaken)
    this.#button.classList.toggle('demo', wallet.kind === 'demo')
    setFlag(this.#button, 'aria-current', isSelected)
    // Not `disabled`, which would take the focus away.
    setFlag(this.#button, 'aria-disabled', isDisabled)
  }
}

function aboutOf({ kind, adapterId, detail, id }: FoundWallet, texts: ChooserTexts, isNameTaken: boolean): string {
  if (kind === 'demo') return texts.demo
  const words = [isBuiltIn(adapterId) ? builtInAdapters[adapterId].name : adapterId]
  if (kind === 'window') words.push(texts.elsewhere)
  // The number that tells equal ids apart.
  if (isNameTaken) words.push(detail ?? /#\d+$/.exec(id)?.[0] ?? '#1')
  return words.join(' · ')
}
