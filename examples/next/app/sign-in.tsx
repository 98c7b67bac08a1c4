'use client'

import { createCountersignClient } from 'countersign/client'
import { SignIn, useSession } from 'countersign/react'
import { useRouter } from 'next/navigation'

const client = createCountersignClient()

// `router.refresh()` has the server components rendered again.
export function SignInBox() {
  const router = useRouter()
  return <SignIn client={client} displayTitle="Sign in to the tulip shop" onSignedIn={() => router.refresh()} />
}

export function SignOutButton() {
  const router = useRouter()
  const { signOut } = useSession(client)
  return (
    <button type="button" onClick={() => signOut().then(() => router.refresh())}>
      Sign out
    </button>
  )
}
