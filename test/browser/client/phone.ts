import { type CountersignClient, createCountersignClient } from '../../../src/browser/client/index.ts'
import type { TestWallet } from '../../support/wallet.ts'
import { fetchFrom, MapStorage, pageWallet } from './support.ts'

/** The client of a phone with this wallet, on the approval page of the service at `url`. */
export function phoneClient(url: string, wallet: TestWallet): CountersignClient {
  return createCountersignClient({
    baseUrl: url,
    storage: new MapStorage(),
    fetch: fetchFrom(url),
    wallet: pageWallet(wallet),
  })
}
