'use client'

/** The public API for React. Everything that is not listed here is private. */

export type { CountersignSignInAttributes } from './element-types.ts'
export type { SessionClient, SessionState } from './session-store.ts'
export { SignIn, type SignInProps } from './sign-in.ts'
export { type SessionHook, useSession } from './use-session.ts'
export {
  type SignInHook,
  type SignInState,
  type UseSignInOptions,
  useSignIn,
  type WalletSignInClient,
} from './use-sign-in.ts'
