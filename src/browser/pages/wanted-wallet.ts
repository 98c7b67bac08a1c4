import type { Session } from '../client/rest.ts'

/** The wallet that an application asks for. */
export interface WantedWallet {
  readonly adapterId: string
  readonly address: string
}

/** The wallet that the page's address asks for as `wallet={adapter_id}:{address}`; `undefined` if there is none such. */
export function wantedWallet(address: URL, adapterIds: readonly string[]): WantedWallet | undefined {
  const text = address.searchParams.get('wallet') ?? ''
  const [adapterId, ...rest] = text.split(':')
  const isAddress = /^[\w: .-]{1,128}$/.test(rest.join(':'))
  return adapterId !== undefined && adapterIds.includes(adapterId) && isAddress
    ? { adapterId, address: rest.join(':') }
    : undefined
}

/** Whether a session is of the wallet. Groups and case of an address say nothing. */
export function isWanted({ adapterId, address }: WantedWallet, session: Session): boolean {
  const plain = (text: string): string => text.replaceAll(' ', '').toLowerCase()
  return session.adapterId === adapterId && plain(session.address) === plain(address)
}
