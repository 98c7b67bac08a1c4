// A kind of wallet that Countersign does not know: accounts with names, such as alice.ring, whose Ed25519 keys are kept in a
// directory and can change. docs/custom-wallet.md explains it; ring.test.ts signs in with it.
import { CountersignError, type SignInForm, type WalletAccount, type WalletAdapter } from 'countersign'

const nameForm = /^[a-z][a-z0-9-]{1,30}\.ring$/
const chains: ReadonlySet<string> = new Set(['main', 'test'])

/** What a Ring wallet signs for a text. The first line keeps it apart from all else that the key may sign. */
export function signedBytes(text: string): Uint8Array {
  return new TextEncoder().encode(`Ring wallet signs:\n${text}`)
}

/** Makes the adapter. `directory` is the address of the server that knows the accounts' keys. */
export function ring(directory: string): WalletAdapter {
  return {
    id: 'ring',
    displayName: 'Ring',

    async checkAtStart(warn) {
      if (!URL.canParse(directory)) throw new TypeError(`ring() needs the directory's URL, not ${directory}`)
      // Any name will do: the question is whether the directory answers.
      await askForKey(directory, 'start.ring').catch((error: Error) =>
        warn('the directory of Ring accounts does not answer', { cause: String(error.cause) }),
      )
    },

    async verify(message, { publicKeyHex, signatureHex, address }, ed25519, remote) {
      const name = readName(address)
      const signature = Buffer.from(signatureHex, 'hex')
      if (signature.length !== 64) throw malformed('signature_hex', 'must be 64 bytes')
      if (publicKeyHex !== '') throw malformed('public_key_hex', 'must be empty: the directory has the key')
      const ask = (): Promise<Uint8Array | undefined> => askForKey(directory, name)
      const key = remote === undefined ? await ask() : await remote.ask(ask)
      if (key === undefined || !ed25519.verify(signature, signedBytes(message), key)) return undefined
      return { adapterId: 'ring', subject: name, publicKeyHex: '', address: name }
    },

    signInText(form: SignInForm, { address, chainId }: WalletAccount) {
      if (chainId !== undefined) requireChain(chainId)
      return [
        `${form.domain} asks ${readName(address)} to sign in.`,
        form.statement,
        `Page: ${form.uri}`,
        ...(chainId === undefined ? [] : [`Chain: ${chainId}`]),
        `Nonce: ${form.nonce}`,
        `Issued: ${new Date(form.issuedAt).toISOString()}`,
        `Expires: ${new Date(form.expiresAt).toISOString()}`,
        ...form.resources.map((resource) => `For: ${resource}`),
      ].join('\n')
    },

    accountId(address, chainId) {
      requireChain(chainId)
      return `ring:${chainId}:${readName(address)}`
    },

    readAddress: (text) => (nameForm.test(text.toLowerCase()) ? text.toLowerCase() : undefined),
  }
}

/** The key that an account has now; `undefined` if there is no such account. */
async function askForKey(directory: string, name: string): Promise<Uint8Array | undefined> {
  try {
    const response = await fetch(`${directory}/keys/${name}`, { signal: AbortSignal.timeout(5_000) })
    if (response.status === 404) return undefined
    const key = Buffer.from(await response.text(), 'hex')
    if (!response.ok || key.length !== 32) throw new Error(`status ${response.status}, ${key.length} bytes`)
    return key
  } catch (cause) {
    // Never `undefined`: that the directory is away says nothing about the signature.
    const message = 'The directory of Ring accounts does not answer; try again shortly'
    throw new CountersignError('HOST_UNAVAILABLE', message, { retryAfterMs: 2_000, cause })
  }
}

/** An account's name in its canonical form. */
function readName(address: string | undefined): string {
  const name = address?.toLowerCase() ?? ''
  if (!nameForm.test(name)) throw malformed('address', 'must be the name of a Ring account, such as alice.ring')
  return name
}

function requireChain(chainId: string): void {
  if (!chains.has(chainId)) throw malformed('chain_id', 'must be main or test')
}

function malformed(field: string, problem: string): CountersignError {
  return new CountersignError('INVALID_REQUEST', `${field} ${problem}`, { metadata: { field } })
}
