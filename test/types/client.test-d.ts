// The assertion is that it compiles, here and in a project that has the package installed (consumer.test.ts).
import {
  type Claim,
  type ClientErrorCode,
  type CountersignClient,
  CountersignClientError,
  createCountersignClient,
  type FinalizedOrder,
  isTerminal,
  nimiqHub,
  nimiqPay,
  type OrderStatus,
  type ProofArtifact,
  parseClaimUrl,
  readStoredToken,
  type Session,
  type SignInResult,
  type SigningAccount,
  type StartedOrder,
  signInWithWallet,
  type UserWallet,
  type Wallet,
} from 'countersign/client'

const client: CountersignClient = createCountersignClient({ baseUrl: 'https://auth.example', appName: 'Example' })

export async function direct(): Promise<string> {
  await client.prepareSignIn()
  const wallet: Wallet | undefined = nimiqPay()
  try {
    const { token, session } = await client.signInWallet({ wallet })
    const { address }: Session = session
    return `${address} ${token}`
  } catch (error) {
    if (!(error instanceof CountersignClientError)) throw error
    const code: ClientErrorCode = error.code
    return code === 'RATE_LIMITED' ? 'later' : code
  }
}

export async function small(): Promise<string | undefined> {
  const result: SignInResult = await signInWithWallet((url, init) => fetch(url, init), { tokenStorageKey: 'token' })
  return result.ok ? readStoredToken({ tokenStorageKey: 'token' }) : undefined
}

export async function desktop(): Promise<ProofArtifact | Session | UserWallet> {
  const order: StartedOrder = await client.startOrder({ kind: 'login', displayTitle: 'Sign in' })
  // @ts-expect-error: a kind that does not exist.
  await client.startOrder({ kind: 'pay' })
  for await (const { status } of client.watchOrder(order)) {
    const known: OrderStatus = status
    if (known === 'approved' || isTerminal(known)) break
  }
  const finalized: FinalizedOrder = await client.finalizeOrder(order)
  // @ts-expect-error: only a login order has a session.
  finalized.session
  if (finalized.kind === 'link') return finalized.wallet
  return finalized.kind === 'login' ? finalized.session : finalized.proofArtifact
}

export async function phone(url: string): Promise<void> {
  const claim: Claim | undefined = parseClaimUrl(url)
  if (claim === undefined) return
  const claimed = await client.claimOrder(claim)
  const challenge = await client.getOrderChallenge(claimed)
  const issuedAt: number = challenge.issuedAt
  if (issuedAt > 0) await client.rejectOrder(claimed)
}

export const hub: typeof nimiqHub = nimiqHub

export async function wallets(account: SigningAccount): Promise<readonly UserWallet[]> {
  await client.prepareSignIn({ account })
  const { adapterId, address }: UserWallet = await client.linkWallet()
  await client.unlinkWallet({ adapterId, address })
  const stop: () => void = client.onSession((session: Session | undefined) => console.log(session?.userId))
  stop()
  return await client.listWallets()
}

export const ethereum: Wallet = {
  adapterId: 'ethereum',
  getAccount: () => ({ address: '0x00', chainId: '1' }),
  onAccountChange: (listener) => {
    listener({ address: '0x01', chainId: '1' })
    listener(undefined)
    // @ts-expect-error: chains are texts.
    listener({ chainId: 1 })
    return () => {}
  },
  sign: async () => '0x00',
}
