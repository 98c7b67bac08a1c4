import type { NonceChallenge } from '../../shared/session.ts'
import { tryStorage } from './page.ts'

/** A sign-in that a wallet at another site, which takes the place of the page, is asked to sign. */
export interface SentSignIn {
  readonly walletId: string
  readonly challenge: NonceChallenge
}

const storageKey = 'countersign.sign-in'

/** Keeps a sign-in in the tab until the way back. If the storage is blocked, the user starts again then. */
export function keepSentSignIn(sent: SentSignIn): void {
  tryStorage('sessionStorage', (storage) => storage.setItem(storageKey, JSON.stringify(sent)))
}

/** The sign-in that was sent from this tab, if its wallet has not answered yet. */
export function readSentSignIn(): SentSignIn | undefined {
  return tryStorage('sessionStorage', (storage) => JSON.parse(storage.getItem(storageKey) ?? 'null') ?? undefined)
}

export function forgetSentSignIn(): void {
  tryStorage('sessionStorage', (storage) => storage.removeItem(storageKey))
}
