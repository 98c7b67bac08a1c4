/** The fields of a sign-in form, as the feature `solana:signIn` takes them. */
export interface SolanaSignInInput {
  readonly domain: string
  /** Absent: the wallet fills it in. */
  readonly address?: string
  readonly statement: string
  readonly uri: string
  readonly version: string
  readonly chainId?: string
  readonly nonce: string
  readonly issuedAt: string
  readonly expirationTime: string
  readonly resources: readonly string[]
}

/** The layout in which the service writes its forms: Sign-In With Solana, with all of these lines and no others. */
const layout = new RegExp(
  [
    '^(?<domain>[^\\n]+) wants you to sign in with your Solana account:',
    '(?<address>[1-9A-HJ-NP-Za-km-z]*)',
    '',
    '(?<statement>[^\\n]+)',
    '',
    'URI: (?<uri>[^\\n]+)',
    'Version: (?<version>[^\\n]+)(?:\\nChain ID: (?<chainId>[^\\n]+))?',
    'Nonce: (?<nonce>[^\\n]+)',
    'Issued At: (?<issuedAt>[^\\n]+)',
    'Expiration Time: (?<expirationTime>[^\\n]+)',
    'Resources:(?<resources>(?:\\n- [^\\n]+)+)$',
  ].join('\\n'),
)

/** Reads a form that the service wrote. `undefined` for any other text, such as that of a sign order. */
export function readSolanaForm(text: string): SolanaSignInInput | undefined {
  const fields = layout.exec(text)?.groups as Record<keyof SolanaSignInInput, string> | undefined
  if (fields === undefined) return undefined
  const { address, chainId, resources, ...others } = fields
  return {
    ...others,
    ...(address === '' ? {} : { address }),
    ...(chainId === undefined ? {} : { chainId }),
    resources: resources.split('\n- ').slice(1),
  }
}

/** The form with its account's address, if it has none. */
export function withAddress(text: string, address: string): string {
  const [first, own, ...rest] = text.split('\n')
  return own === '' ? [first, address, ...rest].join('\n') : text
}
