import { type HubAnswer, takeHubAnswer } from '../wallets/index.ts'
import { hubFor } from './page-wallet.ts'

/**
 * What the Nimiq Hub answered, if the browser comes back from there. Call it before anything changes the page's
 * address. A reload gets the same answer until `forgetHubAnswer`.
 */
export async function readHubAnswer(appName: string): Promise<HubAnswer | undefined> {
  try {
    return await takeHubAnswer(hubFor(appName))
  } catch {
    // Its library did not load. The user can ask the Hub again.
    return undefined
  }
}
