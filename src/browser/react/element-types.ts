import type { CSSProperties, Key, ReactNode, Ref } from 'react'
import type { CountersignSignIn } from '../element/element.ts'

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
