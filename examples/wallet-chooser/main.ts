// A page that lets the user choose a wallet of this browser, without <countersign-sign-in>; see docs/wallets.md.
// In a project of your own, import from 'countersign/client' and 'countersign/client/wallets'.
import { createCountersignClient, type Session } from '../../src/browser/client/index.ts'
import { CountersignWallets, defineWalletChooser, findWallets } from '../../src/browser/wallets/index.ts'

/** Shows the wallets of the page in an element of it, and calls `show` once the user has signed in with one. */
export function chooseWallet(baseUrl: string, show: (session: Session) => void): void {
  const client = createCountersignClient({ baseUrl })
  defineWalletChooser()
  const chooser = new CountersignWallets()
  chooser.finder = findWallets({ adapterIds: ['nimiq', 'ethereum', 'solana'] })
  chooser.addEventListener('countersign:wallet', async ({ detail }) => {
    chooser.disabled = true
    try {
      const { session } = await client.signInWallet({ wallet: await detail.wallet.connect() })
      show(session)
    } finally {
      chooser.disabled = false
    }
  })
  document.body.append(chooser)
}
