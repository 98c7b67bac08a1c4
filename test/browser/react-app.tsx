// The application of react.test.ts, which renders it on a server and in a browser.
import { Activity, useState } from 'react'
import { createCountersignClient, type Wallet } from '../../src/browser/client/index.ts'
import { SignIn, useSession, useSignIn } from '../../src/browser/react/index.ts'
import type { FoundWallet } from '../../src/browser/wallets/index.ts'

/** What the test does from outside: a wallet, and where the application notes its events. */
interface Outside {
  readonly wallet: Wallet
  readonly noted: unknown[]
}

const outside = globalThis as unknown as Outside

const wallets: readonly FoundWallet[] = [
  { id: 'house', name: 'House wallet', adapterId: 'nimiq', kind: 'page', connect: () => outside.wallet },
]

let clients: { readonly url: string; readonly client: ReturnType<typeof createCountersignClient> } | undefined

/** The client of a page, of which there is one. */
function clientOf(url: string) {
  if (clients?.url !== url) clients = { url, client: createCountersignClient({ baseUrl: url }) }
  return clients.client
}

export function App({ service }: { readonly service: string }) {
  const client = clientOf(service)
  const { status, session, error, refresh, signOut } = useSession(client)
  const [renderings, setRenderings] = useState(0)
  const [title, setTitle] = useState('Tally')
  const [isOpen, setOpen] = useState(false)
  const [isHidden, setHidden] = useState(false)
  return (
    <>
      <p id="session">{[status, session?.address, error?.code].join(' ')}</p>
      <Badge service={service} />
      <p id="renderings">{renderings}</p>
      <button type="button" onClick={() => setRenderings((before) => before + 1)}>
        Render
      </button>
      <button type="button" onClick={() => setTitle('Tulips')}>
        Rename
      </button>
      <button type="button" onClick={() => refresh()}>
        Refresh
      </button>
      <button type="button" onClick={() => signOut()}>
        Sign out
      </button>
      <button type="button" onClick={() => setOpen(!isOpen)}>
        Dialog
      </button>
      <button type="button" onClick={() => setHidden(!isHidden)}>
        Hide
      </button>
      {isOpen && <Dialog service={service} />}
      <Activity mode={isHidden ? 'hidden' : 'visible'}>
        {session === undefined && !isOpen && (
          <SignIn
            client={client}
            kind="login"
            displayTitle={title}
            walletsFirst={true}
            crossDeviceOnly={false}
            className="card"
            texts={{ cancel: `Stop ${renderings}` }}
            hub={{ appName: 'Tally', load: () => new Promise(() => {}) }}
            extraWallets={wallets}
            appAddress={() => location.href}
            startOrder={async (request) => {
              outside.noted.push(`start ${renderings}`)
              return await client.startOrder({ kind: 'login', displayTitle: title, ...request })
            }}
            onStatus={(order) => outside.noted.push(`${order.status} ${renderings}`)}
            onSignedIn={(result) => outside.noted.push(`signed in ${result.session.address}`)}
          >
            One moment.
          </SignIn>
        )}
      </Activity>
    </>
  )
}

function Badge({ service }: { readonly service: string }) {
  return <p id="badge">{useSession(clientOf(service)).status}</p>
}

function Dialog({ service }: { readonly service: string }) {
  const { status, error, signIn, reset } = useSignIn(clientOf(service))
  return (
    <>
      <p id="sign-in">{[status, error?.code].join(' ')}</p>
      <button type="button" onClick={() => signIn({ wallet: outside.wallet })}>
        Use wallet
      </button>
      <button type="button" onClick={reset}>
        Reset
      </button>
    </>
  )
}
