import { type HubAnswer, takeHubAnswer } from '../client/wallets/index.ts'
import { hubFor } from './page-wallet.ts'
import { tryStorage } from './storage.ts'

/**
 * What the Nimiq Hub answered, if the browser comes back from there. Call it before anything changes the page's address. A reload
 * gets the same answer until {@link forgetHubAnswer}.
 */
export async function readHubAnswer(appName: string): Promise<HubAnswer | undefined> {
  try {
    return await takeHubAnswer(hubFor(appName))
  } catch {
    // Its library did not load. The user can ask the Hub again.
    return undefined
  }
}

/** Removes what the Hub's library keeps of requests and answers, in the tab and in the page's address. */
export function forgetHubAnswer(): void {
  tryStorage('sessionStorage', (storage) => {
    for (const key of Object.keys(storage)) if (/^(rpcRequests$|response-)/.test(key)) storage.removeItem(key)
  })
  const url = new URL(location.href)
  if (!url.searchParams.has('rpcId')) return
  url.searchParams.delete('rpcId')
  history.replaceState(null, '', url)
}
