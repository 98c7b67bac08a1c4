import type { WalletApp } from './found.ts'

/**
 * Wallets whose own browser a link can open, with the forms that are published. No publisher promises that a fragment arrives, so
 * link addresses without one, such as that of a hand-over. None of the links says whether the app is installed: those that
 * begin with https lead to a page of the wallet's maker if it is not, the others do nothing.
 */
export const walletApps: readonly WalletApp[] = [
  {
    id: 'nimiq-pay',
    name: 'Nimiq Pay',
    adapterIds: ['nimiq', 'ethereum'],
    linkTo: (url) => `nimiqpay://miniapp?url=${encodeURIComponent(absolute(url).href)}`,
    source: 'https://nimiq.dev/mini-apps',
  },
  {
    id: 'metamask',
    name: 'MetaMask',
    adapterIds: ['ethereum'],
    // Host and path as they are: the form has no place for a scheme, and percent-encoded ones open an empty tab.
    linkTo: (url) => {
      const { host, pathname, search } = absolute(url)
      return `https://link.metamask.io/dapp/${host}${pathname}${search}`
    },
    source: 'https://docs.metamask.io/metamask-connect/evm/guides/metamask-exclusive/use-deeplinks/',
  },
  {
    id: 'phantom',
    name: 'Phantom',
    adapterIds: ['solana', 'ethereum'],
    linkTo: (url) => `https://phantom.app/ul/browse/${encodedWithReferrer(url)}`,
    source: 'https://docs.phantom.com/phantom-deeplinks/other-methods/browse',
  },
  {
    id: 'solflare',
    name: 'Solflare',
    adapterIds: ['solana'],
    linkTo: (url) => `https://solflare.com/ul/v1/browse/${encodedWithReferrer(url)}`,
    source: 'https://github.com/anza-xyz/wallet-adapter/pull/706',
  },
  {
    id: 'coinbase',
    name: 'Coinbase Wallet',
    adapterIds: ['ethereum'],
    linkTo: (url) => `https://go.cb-w.com/dapp?cb_url=${encodeURIComponent(absolute(url).href)}`,
    source: 'https://docs.cdp.coinbase.com/coinbase-wallet/developer-guidance/mobile-dapp-integration',
  },
  {
    id: 'trust',
    name: 'Trust Wallet',
    adapterIds: ['ethereum'],
    // 60 is Ethereum's coin type (SLIP-44).
    linkTo: (url) => `https://link.trustwallet.com/open_url?coin_id=60&url=${encodeURIComponent(absolute(url).href)}`,
    source: 'https://developer.trustwallet.com/developer/develop-for-trust/deeplinking',
  },
]

/** The address with its origin as referrer, which both makers of the form ask for. */
function encodedWithReferrer(url: string): string {
  const { href, origin } = absolute(url)
  return `${encodeURIComponent(href)}?ref=${encodeURIComponent(origin)}`
}

/** Throws a TypeError for anything but an absolute http or https address: a link must never open another scheme in a wallet. */
function absolute(url: string): URL {
  const parsed = new URL(url)
  if (!/^https?:$/.test(parsed.protocol))
    throw new TypeError(`${parsed.protocol} addresses cannot be opened in a wallet`)
  return parsed
}
