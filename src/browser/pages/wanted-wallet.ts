import type { Session } from '../client/index.ts'

/** The wallet that an application asks for. */
export interface WantedWallet {
  readonly adapterId: string
  readonly address: string
}

/** The wallet that the page's address names as `wallet={adapter_id}:{address}`; `undefined` if it names none. */
export function wantedWallet(address: URL, adapterIds: readonly string[]): WantedWallet | undefined {
  const named = /^([^:]+):([\w: .-]{1,128})$/.exec(address.searchParams.get('wallet') ?? '')
  const [, adapterId = '', walletAddress = ''] = named ?? []
  return adapterIds.includes(adapterId) ? { adapterId, address: walletAddress } : undefined
}

/** Whether a session is of the wallet. Spaces and case of an address do not count. */
export function isWanted({ adapterId, address }: WantedWallet, session: Session): boolean {
  const plain = (text: string): string => text.replaceAll(' ', '').toLowerCase()
  return session.adapterId === adapterId && plain(session.address) === plain(address)
}
