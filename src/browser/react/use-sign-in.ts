'use client'

import { useCallback, useEffect, useRef, useState } from 'react'
import type { ClientCalls } from '../client/calls.ts'
import { type CountersignClientError, failureOf } from '../client/errors.ts'
import type { SignInResult } from '../client/index.ts'
import type { PrepareSignInOptions, SignInOptions } from '../client/sign-in.ts'

/**
 * The calls of a client that {@link useSignIn} makes: every client of `countersign/client` and its subpaths has them.
 */
export interface WalletSignInClient extends Pick<ClientCalls, 'prepareSignIn' | 'signInWallet' | 'onSession'> {}

/** Options of {@link useSignIn}. They are those of the client's `prepareSignIn`. */
export interface UseSignInOptions extends Pick<PrepareSignInOptions, 'appName' | 'account'> {
  /** Whether a nonce is fetched in advance. Default true. */
  readonly prepare?: boolean | undefined
}

/** How far a sign-in is. */
export type SignInState =
  | { readonly status: 'idle'; readonly result: undefined; readonly error: undefined }
  | { readonly status: 'signing-in'; readonly result: undefined; readonly error: undefined }
  | { readonly status: 'signed-in'; readonly result: SignInResult; readonly error: undefined }
  | { readonly status: 'failed'; readonly result: undefined; readonly error: CountersignClientError }

/** What {@link useSignIn} returns. When the session ends, `signed-in` becomes `idle`. */
export type SignInHook = SignInState & {
  /**
   * Signs in with a wallet on this device. Call it in a user gesture, because the wallet may open a window. It takes
   * the place of a sign-in that still waits for its wallet. Resolves with the result, or with `undefined` if it failed
   * or was left. Never rejects: `error` has the failure.
   */
  readonly signIn: (options?: SignInOptions) => Promise<SignInResult | undefined>
  /** Leaves a sign-in that waits for its wallet, and forgets the result and the error of the last one. */
  readonly reset: () => void
}

const idle: SignInState = { status: 'idle', result: undefined, error: undefined }

/**
 * Signs in with a wallet on this device. While the component is mounted and the user has not signed in with it, a nonce
 * is kept at hand, so that a tap reaches the wallet without a network call in between. If the component goes, so does a
 * sign-in that waits for its wallet. Use the hook in one component for each client: the client keeps one nonce.
 */
export function useSignIn(client: WalletSignInClient, options: UseSignInOptions = {}): SignInHook {
  const { appName, account, prepare = true } = options
  const { adapterId, address, chainId } = account ?? {}
  const [state, setState] = useState<SignInState>(idle)
  const running = useRef<AbortController | undefined>(undefined)
  const isPreparing = prepare && state.status !== 'signed-in'

  useEffect(() => {
    if (!isPreparing) return
    const leaving = new AbortController()
    const { signal } = leaving
    const parts = { ...(address === undefined ? {} : { address }), ...(chainId === undefined ? {} : { chainId }) }
    const prepared = adapterId === undefined ? undefined : { adapterId, ...parts }
    // If this fails, the next wake-up of the page or the sign-in itself fetches a nonce.
    client.prepareSignIn({ appName, account: prepared, signal }).catch(() => {})
    return () => leaving.abort()
  }, [client, appName, adapterId, address, chainId, isPreparing])

  const signIn = useCallback(
    async (signInOptions: SignInOptions = {}): Promise<SignInResult | undefined> => {
      running.current?.abort()
      const own = new AbortController()
      running.current = own
      const { signal: given } = signInOptions
      const signal = given === undefined ? own.signal : AbortSignal.any([given, own.signal])
      setState({ status: 'signing-in', result: undefined, error: undefined })
      try {
        const result = await client.signInWallet({ appName, ...signInOptions, signal })
        if (running.current === own) setState({ status: 'signed-in', result, error: undefined })
        return result
      } catch (thrown) {
        if (running.current === own) setState({ status: 'failed', result: undefined, error: failureOf(thrown) })
        return undefined
      } finally {
        if (running.current === own) running.current = undefined
      }
    },
    [client, appName],
  )

  const reset = useCallback(() => {
    running.current?.abort()
    running.current = undefined
    setState(idle)
  }, [])

  useEffect(() => reset, [reset])
  useEffect(
    () =>
      client.onSession((session) => {
        if (session === undefined) setState((now) => (now.status === 'signed-in' ? idle : now))
      }),
    [client],
  )

  return { ...state, signIn, reset }
}
