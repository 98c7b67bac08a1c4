'use client'

import {
  type CSSProperties,
  createElement,
  type ForwardRefExoticComponent,
  forwardRef,
  type Key,
  type ReactNode,
  type Ref,
  type RefAttributes,
  type RefObject,
  useEffect,
  useImperativeHandle,
  useLayoutEffect,
  useRef,
  useState,
} from 'react'
import { CountersignClientError } from '../client/errors.ts'
import type { StartOrderOptions } from '../client/index.ts'
import { loadOnDemand } from '../client/page.ts'
import type {
  CountersignSignIn,
  CountersignSignInEvents,
  SignInClient,
  SignInTexts,
  StartOrderOnBackend,
} from '../element/element.ts'
import type { AppAddress, FoundWallet } from '../wallets/found.ts'
import type { HubOptions } from '../wallets/hub.ts'

/**
 * Properties of {@link SignIn}. Those without a comment are attributes and properties of `<countersign-sign-in>`, which
 * describes them. A change starts a new order, but for `texts`, functions, and what the page looks like.
 */
export interface SignInProps extends Omit<StartOrderOptions, 'kind' | 'computerKey' | 'requester'> {
  readonly baseUrl?: string | undefined
  readonly basePath?: string | undefined
  readonly endpointPrefix?: string | undefined
  readonly kind?: 'login' | 'sign' | undefined
  readonly adapterIds?: readonly string[] | undefined
  readonly crossDeviceOnly?: boolean | undefined
  readonly walletsFirst?: boolean | undefined
  readonly tokenStorage?: boolean | undefined
  readonly tokenStorageKey?: string | undefined
  /**
   * Client to use instead of one made from the properties. Make it outside of components: another one starts a new
   * order.
   */
  readonly client?: SignInClient | undefined
  /** Has the page's backend start the order. It can be another function at each rendering: the latest is called. */
  readonly startOrder?: StartOrderOnBackend | undefined
  readonly texts?: Partial<SignInTexts> | undefined
  /** The Nimiq Hub. Its `load` can be another function at each rendering. */
  readonly hub?: HubOptions | undefined
  /** Wallets of the page's own. Make them outside of components: other ones start a new order. */
  readonly extraWallets?: readonly FoundWallet[] | undefined
  /** Whether people without a wallet are led to three that they can get. Default: yes. */
  readonly walletHelp?: boolean | undefined
  readonly appAddress?: AppAddress | undefined
  /** A user has signed in. */
  readonly onSignedIn?: ((result: CountersignSignInEvents['countersign:signed-in']) => void) | undefined
  /** An order of kind sign has yielded a proof. */
  readonly onSigned?: ((result: CountersignSignInEvents['countersign:signed']) => void) | undefined
  /** The order has a new status. */
  readonly onStatus?: ((status: CountersignSignInEvents['countersign:status']) => void) | undefined
  /** A call or a wallet failed, or the element could not be loaded (NETWORK). */
  readonly onError?: ((error: CountersignClientError) => void) | undefined
  readonly id?: string | undefined
  readonly className?: string | undefined
  readonly style?: CSSProperties | undefined
  /** What is shown until the element has been loaded. */
  readonly children?: ReactNode
}

/** Without a warning on servers, where React 18 has one for layout effects. */
const useBrowserLayoutEffect = globalThis.document === undefined ? useEffect : useLayoutEffect

const noWallets: readonly FoundWallet[] = []

/**
 * `<countersign-sign-in>` as a component: signs in with a wallet on a phone or on this device, or requests a signature
 * from a phone. On a server it renders the element with its attributes and without content; browsers load the element
 * after the first rendering. The `ref` is the element, with `restart()` and `cancel()` from then on.
 */
export const SignIn: ForwardRefExoticComponent<SignInProps & RefAttributes<CountersignSignIn>> = forwardRef<
  CountersignSignIn,
  SignInProps
>(function SignIn(props, ref) {
  const { id, className, style, children, client, texts, extraWallets = noWallets } = props
  const inner = useRef<CountersignSignIn>(null)
  useImperativeHandle(ref, () => inner.current as CountersignSignIn, [])
  const latest = useRef(props)
  useBrowserLayoutEffect(() => {
    latest.current = props
  })
  // Functions that stay the same, because setting others would start a new order.
  const [startOrder] = useState(() => (request: Parameters<StartOrderOnBackend>[0]) => {
    const { startOrder: start } = latest.current
    return start === undefined ? Promise.reject(new TypeError('startOrder is gone')) : start(request)
  })
  const [makeAddress] = useState(() => () => {
    const { appAddress } = latest.current
    return typeof appAddress === 'function' ? appAddress() : (appAddress ?? location.href)
  })

  useProperty(inner, 'client', client)
  useProperty(inner, 'startOrder', props.startOrder === undefined ? undefined : startOrder)
  useProperty(inner, 'appAddress', typeof props.appAddress === 'function' ? makeAddress : props.appAddress)
  useProperty(inner, 'hub', useHub(props.hub))
  useProperty(inner, 'extraWallets', extraWallets)
  useProperty(inner, 'walletHelp', props.walletHelp ?? true)
  const hadTexts = useRef(false)
  useBrowserLayoutEffect(() => {
    if (inner.current !== null && (texts !== undefined || hadTexts.current)) inner.current.texts = texts ?? {}
    hadTexts.current = texts !== undefined
  }, [texts])

  useBrowserLayoutEffect(() => {
    const element = inner.current
    if (element === null) return
    const listening = new AbortController()
    const listen = <Name extends keyof CountersignSignInEvents>(
      name: Name,
      handle: (detail: CountersignSignInEvents[Name]) => void,
    ): void => {
      const onEvent = ({ detail }: CustomEvent<CountersignSignInEvents[Name]>): void => handle(detail)
      element.addEventListener(name, onEvent as EventListener, { signal: listening.signal })
    }
    listen('countersign:signed-in', (result) => latest.current.onSignedIn?.(result))
    listen('countersign:signed', (result) => latest.current.onSigned?.(result))
    listen('countersign:status', (status) => latest.current.onStatus?.(status))
    listen('countersign:error', ({ error }) => latest.current.onError?.(error))
    return () => listening.abort()
  }, [])

  useEffect(() => {
    let isGone = false
    loadOnDemand(() => import('../element/element.ts')).catch((cause: unknown) => {
      if (isGone) return
      latest.current.onError?.(new CountersignClientError('NETWORK', 'The element could not be loaded', { cause }))
    })
    return () => {
      isGone = true
    }
  }, [])

  // `class`, because React 18 would write `classname`.
  const own = { ref: inner, id, class: className, style }
  return createElement('countersign-sign-in', { ...attributesOf(props), ...own }, children)
})

/** The attributes of the element. Those that are absent are `undefined`, which React leaves out. */
function attributesOf(props: SignInProps): Record<string, string | undefined> {
  return {
    'base-url': props.baseUrl,
    'base-path': props.basePath,
    'endpoint-prefix': props.endpointPrefix,
    kind: props.kind,
    'adapter-id': props.adapterId,
    'adapter-ids': props.adapterIds?.join(','),
    'cross-device-only': present(props.crossDeviceOnly),
    'wallets-first': present(props.walletsFirst),
    'return-to': props.returnTo,
    'display-title': props.displayTitle,
    'display-summary': props.displaySummary,
    payload: props.payload,
    'payload-hash': props.payloadHash,
    'expected-address': props.expectedAddress,
    'expected-public-key-hex': props.expectedPublicKeyHex,
    'token-storage': present(props.tokenStorage),
    'token-storage-key': props.tokenStorageKey,
  }
}

/** A boolean attribute as text: React 18 would write "false", and the attribute would be there. */
function present(isSet: boolean | undefined): string | undefined {
  return isSet ? '' : undefined
}

/** Options of the Hub that stay the same object for as long as they say the same. */
function useHub(given: HubOptions | undefined): HubOptions | undefined {
  const latest = useRef(given)
  useBrowserLayoutEffect(() => {
    latest.current = given
  })
  const key = given === undefined ? undefined : JSON.stringify({ ...given, load: undefined })
  const [kept, keep] = useState<{ readonly key?: string | undefined; readonly hub?: HubOptions | undefined }>({})
  if (kept.key === key) return kept.hub
  const hub = given && { ...given, load: () => (latest.current ?? given).load() }
  keep({ key, hub })
  return hub
}

/**
 * Sets a property of the element unless it has this value already: effects that run again must not start a new order.
 */
function useProperty<Name extends 'client' | 'startOrder' | 'hub' | 'extraWallets' | 'walletHelp' | 'appAddress'>(
  inner: RefObject<CountersignSignIn | null>,
  name: Name,
  value: CountersignSignIn[Name],
): void {
  useBrowserLayoutEffect(() => {
    const element = inner.current
    if (element !== null && element[name] !== value) element[name] = value
  }, [inner, name, value])
}

/**
 * Attributes of `<countersign-sign-in>` in JSX. Properties such as `client` are not among them, because React sets
 * those only if the element has been loaded: set them through `ref`, or use the component `SignIn`.
 */
export interface CountersignSignInAttributes {
  readonly 'base-url'?: string | undefined
  readonly 'base-path'?: string | undefined
  readonly 'endpoint-prefix'?: string | undefined
  readonly kind?: 'login' | 'sign' | undefined
  readonly 'adapter-id'?: string | undefined
  readonly 'adapter-ids'?: string | undefined
  /** Not `false`, which React 18 writes as text: the attribute would be there. */
  readonly 'cross-device-only'?: '' | true | undefined
  /** As `cross-device-only`. */
  readonly 'wallets-first'?: '' | true | undefined
  readonly 'return-to'?: string | undefined
  readonly 'display-title'?: string | undefined
  readonly 'display-summary'?: string | undefined
  readonly payload?: string | undefined
  readonly 'payload-hash'?: string | undefined
  readonly 'expected-address'?: string | undefined
  readonly 'expected-public-key-hex'?: string | undefined
  /** As `cross-device-only`. */
  readonly 'token-storage'?: '' | true | undefined
  readonly 'token-storage-key'?: string | undefined
  readonly key?: Key | null | undefined
  readonly ref?: Ref<CountersignSignIn> | undefined
  readonly id?: string | undefined
  /** The attribute `class`: React 18 does not know `className` for custom elements. */
  readonly class?: string | undefined
  readonly style?: CSSProperties | undefined
  readonly hidden?: '' | true | undefined
  readonly children?: ReactNode
}

declare module 'react' {
  namespace JSX {
    interface IntrinsicElements {
      'countersign-sign-in': CountersignSignInAttributes
    }
  }
}
