import '@rainbow-me/rainbowkit/styles.css'
import { ConnectButton, getDefaultConfig, RainbowKitProvider } from '@rainbow-me/rainbowkit'
import { QueryClient, QueryClientProvider } from '@tanstack/react-query'
import { useSession } from 'countersign/react'
import { createRoot } from 'react-dom/client'
import { WagmiProvider } from 'wagmi'
import { mainnet } from 'wagmi/chains'
import { Authentication, client } from './authentication'

const config = getDefaultConfig({ appName: 'Tulip Shop', projectId: 'your-project-id', chains: [mainnet] })

function Account() {
  const { session } = useSession(client)
  return <p>{session ? `Signed in as ${session.address}` : 'Signed out'}</p>
}

createRoot(document.getElementById('root') as HTMLElement).render(
  <WagmiProvider config={config}>
    <QueryClientProvider client={new QueryClient()}>
      <Authentication>
        <RainbowKitProvider>
          <ConnectButton />
          <Account />
        </RainbowKitProvider>
      </Authentication>
    </QueryClientProvider>
  </WagmiProvider>,
)
