// The assertion is that it compiles, here and in a project that has the package installed (consumer.test.ts).
import {
  type ChooserTexts,
  type CountersignWallets,
  defineWalletChooser,
  ethereumWallet,
  findWallets,
  type HubModule,
  takeHubAnswer,
  type WalletFinder,
  walletApps,
} from 'countersign/client/wallets'

declare const hubModule: HubModule
const hub = { load: async () => hubModule, appName: 'Tally' }

defineWalletChooser()
const finder: WalletFinder = findWallets({ adapterIds: ['nimiq', 'ethereum'], hub })
const chooser: CountersignWallets = document.createElement('countersign-wallets')
const texts: Partial<ChooserTexts> = { choose: 'Womit?' }
chooser.finder = finder
chooser.texts = texts
chooser.appAddress = async () => 'https://app.example/cross-device/continue/csh_1'
chooser.apps = walletApps.filter(({ id }) => id !== 'trust')
chooser.addEventListener('countersign:wallet', async ({ detail }) => {
  const wallet = await detail.wallet.connect()
  const account: { address?: string; chainId?: string } | undefined = await wallet.getAccount?.()
  chooser.selected = detail.wallet.id
  console.log(account?.address)
})
chooser.addEventListener('countersign:open-in', ({ detail }) => console.log(detail.app.name))
// @ts-expect-error: a finder's list cannot be changed.
finder.wallets.push()
const stop: () => void = ethereumWallet({ request: async () => [] }).onAccountChange((account) => account?.address)
stop()
const answer = await takeHubAnswer(hub)
if (answer?.signature) console.log(answer.message, answer.signature.signatureHex)
else if (answer) console.log(answer.error.code)
