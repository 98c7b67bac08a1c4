'use client'

/** The public API for React. Everything that is not listed here is private. */

export { type SessionClient, type SessionHook, type SessionState, useSession } from './session-store.ts'
export { type CountersignSignInAttributes, SignIn, type SignInProps } from './sign-in.ts'
export {
  type SignInHook,
  type SignInState,
  type UseSignInOptions,
  useSignIn,
  type WalletSignInClient,
} from './use-sign-in.ts'
