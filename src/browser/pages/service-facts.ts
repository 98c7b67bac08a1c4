import { isLoopbackHost } from '../../shared/origin.ts'
import { metaContent } from './dom.ts'

/** What the service says of itself to its pages, and what their address says. */
export interface ServiceFacts {
  /** Ids of the wallet adapters that the service accepts. */
  readonly adapters: readonly string[]
  /**
   * Whether the page may offer the demo wallet. Never over https, even if the service says so: it may not know that a
   * proxy in front of it has a name and a certificate.
   */
  readonly demoWallet: boolean
  /** Whether the page is at an address that only this computer can reach. */
  readonly isLoopbackPage: boolean
}

/** Reads the facts from the page. */
export function readServiceFacts(): ServiceFacts {
  return {
    adapters: metaContent('countersign-adapters')
      .split(',')
      .filter((id) => id !== ''),
    demoWallet: metaContent('countersign-demo-wallet') === 'on' && location.protocol === 'http:',
    isLoopbackPage: isLoopbackHost(location.hostname),
  }
}
