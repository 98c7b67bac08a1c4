import type { CountersignClientError } from 'countersign/client'
import { SignIn, useSession } from 'countersign/react'
import { useState } from 'react'
import { client } from './client'

export function App() {
  const { status, session, signOut } = useSession(client)
  const [problem, setProblem] = useState<CountersignClientError>()

  if (status === 'loading') return <p>One moment.</p>
  // While the service is unavailable, a user who was signed in still is.
  return (
    <main>
      <h1>The tulip shop</h1>
      {session === undefined ? (
        <SignIn
          client={client}
          displayTitle="Sign in to the tulip shop"
          onSignedIn={() => setProblem(undefined)}
          onError={setProblem}
        />
      ) : (
        <p>
          Signed in as {session.address}{' '}
          <button type="button" onClick={() => signOut().then(() => setProblem(undefined), setProblem)}>
            Sign out
          </button>
        </p>
      )}
      {status === 'unavailable' && <p role="status">The service does not answer.</p>}
      {problem !== undefined && <p role="alert">That did not work: {problem.code}</p>}
    </main>
  )
}
