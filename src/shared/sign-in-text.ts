import type { SignInForm } from './session.ts'

/** An account as a form has it. */
export interface NamedAccount {
  readonly address: string
  /** Absent: the text has no such line. */
  readonly chainId?: string | number | undefined
}

/**
 * The text of a sign-in form, in the layout that EIP-4361 and Sign-In With Solana share: a page that writes its text
 * itself and the service, which writes it again and accepts no other, have it from here. `chain` is the name of the
 * chain in the first line. Sources: EIP-4361; phantom/sign-in-with-solana.
 */
export function signInText(chain: string, form: SignInForm, { address, chainId }: NamedAccount): string {
  return [
    `${form.domain} wants you to sign in with your ${chain} account:`,
    address,
    '',
    form.statement,
    '',
    `URI: ${form.uri}`,
    `Version: ${form.version}`,
    ...(chainId === undefined ? [] : [`Chain ID: ${chainId}`]),
    `Nonce: ${form.nonce}`,
    `Issued At: ${form.issuedAt}`,
    `Expiration Time: ${form.expirationTime}`,
    'Resources:',
    ...form.resources.map((resource) => `- ${resource}`),
  ].join('\n')
}
