import { mainnet, solana } from '@reown/appkit/networks'
import { createAppKit } from '@reown/appkit/react'
import { SolanaAdapter } from '@reown/appkit-adapter-solana'
import { WagmiAdapter } from '@reown/appkit-adapter-wagmi'
import { createCountersignClient } from 'countersign/client'
import { siwx } from 'countersign/client/siwe'
import { useSession } from 'countersign/react'
import { createRoot } from 'react-dom/client'

const client = createCountersignClient({ baseUrl: 'https://auth.example' })
const projectId = 'your-project-id'
const url = location.origin

createAppKit({
  adapters: [new WagmiAdapter({ networks: [mainnet], projectId }), new SolanaAdapter()],
  networks: [mainnet, solana],
  projectId,
  metadata: { name: 'Tulip Shop', description: 'Tulips', url, icons: [] },
  features: { email: false, socials: [], analytics: false },
  siwx: siwx(client),
})

function Account() {
  const { session } = useSession(client)
  return <p>{session ? `Signed in as ${session.address}` : 'Signed out'}</p>
}

createRoot(document.getElementById('root') as HTMLElement).render(
  <>
    <appkit-button />
    <Account />
  </>,
)
