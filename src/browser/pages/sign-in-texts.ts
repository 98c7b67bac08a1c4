import { english } from '../../shared/texts/english.ts'
import type { DeviceTexts, SignInTexts } from '../element/texts.ts'
import type { Words } from './words.ts'

/** Texts of the custom element, and of its list of wallets, in the page's language. */
export function signInTexts(words: Words): Partial<SignInTexts> {
  const wallets: Partial<DeviceTexts> = {
    ...textsUnder('sign-in.wallet.', words),
    looking: words.say('wallet.looking'),
    none: words.say('wallet.none'),
    list: words.say('wallet.list'),
    elsewhere: words.say('wallet.elsewhere'),
    demo: words.say('wallet.demo.about'),
    demoWallet: words.say('wallet.demo'),
  }
  // The page says by itself that a code leads to this computer only, and how to change that.
  return { ...textsUnder('sign-in.order.', words), localOnly: '', wallets }
}

/** The texts whose names begin so, by the rest of their names. The element fills in their placeholders. */
function textsUnder(prefix: string, words: Words): Record<string, string> {
  const keys = Object.keys(english).filter((key) => key.startsWith(prefix))
  return Object.fromEntries(keys.map((key) => [key.slice(prefix.length), words.text(key)]))
}
