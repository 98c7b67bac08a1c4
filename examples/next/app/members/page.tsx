import { redirect } from 'next/navigation'
import { Suspense } from 'react'
import { currentSession } from '../../lib/session'

export default function Page() {
  return (
    <main>
      <h1>For members</h1>
      <Suspense fallback={<p>One moment.</p>}>
        <Offer />
      </Suspense>
    </main>
  )
}

/** Only for those who have signed in; others come to the service's sign-in page, and from there back. */
async function Offer() {
  const session = await currentSession()
  if (session === undefined) redirect('/api/auth/sign-in?returnTo=/members')
  return <p>Black tulips for {session.address}.</p>
}
