// The assertion is that it compiles, here and in a project that has the package installed (consumer.test.ts).
import { createCountersignClient, type Session } from 'countersign/client'
import type { CountersignSignIn } from 'countersign/client/element'
import { germanTexts } from 'countersign/client/wallets'
import { type SessionHook, SignIn, type SignInHook, type SignInProps, useSession, useSignIn } from 'countersign/react'
import { useRef } from 'react'

const client = createCountersignClient()
const direct = createCountersignClient()

export function Header() {
  const hook: SessionHook = useSession(client)
  if (hook.status === 'signed-in') {
    const session: Session = hook.session
    return <p>{session.address}</p>
  }
  if (hook.status === 'unavailable') return <p>{hook.error.code}</p>
  // @ts-expect-error: nobody is signed in.
  hook.session.address
  return (
    <button type="button" onClick={() => hook.signOut().then(hook.refresh)}>
      Sign out
    </button>
  )
}

export function Button() {
  const hook: SignInHook = useSignIn(direct, { account: { adapterId: 'ethereum', chainId: '1' } })
  if (hook.status === 'failed') console.log(hook.error.code, hook.result)
  if (hook.status === 'signed-in') console.log(hook.result.session.id)
  // @ts-expect-error: there is no such option.
  hook.signIn({ walet: undefined })
  return (
    <button type="button" onClick={() => hook.signIn()} onBlur={hook.reset}>
      Sign in
    </button>
  )
}

export function Dialog(props: SignInProps) {
  const element = useRef<CountersignSignIn>(null)
  return (
    <>
      <SignIn
        {...props}
        ref={element}
        client={client}
        adapterIds={['nimiq']}
        texts={{ cancel: 'Abbrechen', wallets: germanTexts }}
        onSignedIn={({ session, redirectTo }) => console.log(session.address, redirectTo)}
        onSigned={({ proofArtifact }) => console.log(proofArtifact.message)}
        onStatus={({ orderId, status }) => console.log(orderId, status)}
        onError={({ code }) => console.log(code)}
        className="card"
      >
        One moment.
      </SignIn>
      <button type="button" onClick={() => element.current?.restart()}>
        Again
      </button>
    </>
  )
}

// @ts-expect-error: a kind that does not exist.
export const wrongKind = <SignIn kind="pay" />

// The element itself.
export const plain = <countersign-sign-in base-url="https://auth.example" cross-device-only="" class="card" />
// @ts-expect-error: a kind that does not exist.
export const wrong = <countersign-sign-in kind="pay" />
// @ts-expect-error: React 18 would write it as text, and the attribute would be there.
export const present = <countersign-sign-in cross-device-only={false} />
// @ts-expect-error: React sets no properties before the element is loaded.
export const property = <countersign-sign-in client={client} />
