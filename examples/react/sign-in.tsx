// A component that signs in with a wallet. In a project of your own, import from 'countersign/client'.
import { useEffect, useState } from 'react'
import { CountersignClientError, createCountersignClient, type Session } from '../../src/client/index.ts'

const client = createCountersignClient({ baseUrl: 'http://localhost:8080' })

type State = { session: Session | undefined; problem?: string } | 'asking'

export function SignIn() {
  const [state, setState] = useState<State>('asking')

  useEffect(() => {
    const leaving = new AbortController()
    const { signal } = leaving
    client.getCurrentSession({ signal }).then(
      (session) => setState({ session }),
      (error) => !signal.aborted && setState({ session: undefined, problem: describe(error) }),
    )
    // A nonce at hand, so that the tap reaches the wallet without a call to the network in between.
    client.prepareSignIn({ signal }).catch(() => {})
    return () => leaving.abort()
  }, [])

  const signIn = () =>
    client.signInWallet().then(
      ({ session }) => setState({ session }),
      (error) => setState({ session: undefined, problem: describe(error) }),
    )
  const signOut = (session: Session) =>
    client.signOut().then(
      () => setState({ session: undefined }),
      (error) => setState({ session, problem: describe(error) }),
    )

  if (state === 'asking') return <p>One moment.</p>
  const { session, problem } = state
  return (
    <section>
      {session === undefined ? (
        <button type="button" onClick={signIn}>
          Sign in with your wallet
        </button>
      ) : (
        <p>
          Signed in as {session.address}{' '}
          <button type="button" onClick={() => signOut(session)}>
            Sign out
          </button>
        </p>
      )}
      {problem !== undefined && <p role="alert">{problem}</p>}
    </section>
  )
}

function describe(error: unknown): string {
  const code = error instanceof CountersignClientError ? error.code : 'INTERNAL'
  return code === 'WALLET_DECLINED' ? 'You declined in the wallet.' : `That did not work: ${code}`
}
