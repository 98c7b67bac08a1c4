import { Suspense } from 'react'
import { currentSession } from '../lib/session'
import { SignInBox, SignOutButton } from './sign-in'

export default function Page() {
  return (
    <main>
      <h1>The tulip shop</h1>
      <Suspense fallback={<p>One moment.</p>}>
        <Visitor />
      </Suspense>
    </main>
  )
}

async function Visitor() {
  const session = await currentSession()
  if (session === undefined) return <SignInBox />
  return (
    <>
      <p>Signed in as {session.address}</p>
      <p>
        <a href="/members">For members</a> <a href="/api/auth/account">Your account</a>
      </p>
      <SignOutButton />
    </>
  )
}
