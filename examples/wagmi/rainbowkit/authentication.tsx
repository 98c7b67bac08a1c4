import { createAuthenticationAdapter, RainbowKitAuthenticationProvider } from '@rainbow-me/rainbowkit'
import { createCountersignClient } from 'countersign/client'
import { rainbowKit } from 'countersign/client/siwe'
import { useSession } from 'countersign/react'
import type { ReactNode } from 'react'

export const client = createCountersignClient({ baseUrl: 'https://auth.example' })
const adapter = createAuthenticationAdapter(rainbowKit(client))

export function Authentication({ children }: { children: ReactNode }) {
  const { session, status: known } = useSession(client)
  const status = session ? 'authenticated' : known === 'signed-out' ? 'unauthenticated' : 'loading'
  return <RainbowKitAuthenticationProvider {...{ adapter, status, children }} />
}
