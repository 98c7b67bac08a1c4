import { createReadStream } from 'node:fs'
import { createInterface } from 'node:readline'
import { isMadeUserId } from '../../base/token.ts'
import { AdministrationError, type ImportedWallet } from '../../core/users/user-administration.ts'
import { derivedUserId } from '../../core/users/user-records.ts'
import { readWalletKey, readWalletName } from '../../core/wallet/adapters.ts'
import type { ProvenIdentity, WalletAdapter } from '../../core/wallet/wallet.ts'
import { parseObject } from '../../shared/json-object.ts'
import { isPlainLine } from '../../shared/plain-line.ts'

/**
 * Reads wallets and their users from a file of JSON lines, `{"wallet": "ethereum:0x…", "user_id": "…"}`, all of it or
 * nothing. Rejects with an `AdministrationError` that names the line that does not fit.
 */
export async function readImportFile(
  file: string,
  adapters: readonly WalletAdapter[],
): Promise<readonly ImportedWallet[]> {
  const lines = createInterface({ input: createReadStream(file), crlfDelay: Number.POSITIVE_INFINITY })
  const wallets = new Map<string, ImportedWallet>()
  let line = 0
  try {
    for await (const text of lines) {
      line++
      if (text.trim() === '') continue
      // The first can begin with the byte order mark that some editors put there.
      const { wallet, userId } = readLine(text.replace(/^\uFEFF/, ''), line, adapters)
      const name = `${wallet.adapterId} ${wallet.subject}`
      const before = wallets.get(name)?.line
      if (before !== undefined) throw wrong(line, `the wallet is in line ${before}, too`)
      wallets.set(name, { wallet, userId, line })
    }
  } catch (cause) {
    if (cause instanceof AdministrationError) throw cause
    throw new AdministrationError(`${file} cannot be read: ${(cause as NodeJS.ErrnoException).code}`, { cause })
  }
  return [...wallets.values()]
}

function readLine(
  text: string,
  line: number,
  adapters: readonly WalletAdapter[],
): { readonly wallet: ProvenIdentity; readonly userId: string } {
  const parsed = parseObject(text)
  if (parsed === undefined) throw wrong(line, 'it is no JSON object')
  const { wallet, user_id: userId, ...others } = parsed
  if (typeof wallet !== 'string' || typeof userId !== 'string' || Object.keys(others).length > 0) {
    throw wrong(line, 'it must be {"wallet": "ethereum:0x…", "user_id": "…"}')
  }
  if (userId.length < 1 || userId.length > 200 || !isPlainLine(userId)) {
    throw wrong(line, 'user_id must be one line of 1 to 200 characters')
  }
  if (readWalletKey(userId, adapters) !== undefined) {
    throw wrong(line, 'user_id begins with the id of an adapter and a colon, as a wallet does')
  }
  const identity = readWallet(wallet, line, adapters)
  // Another wallet's: its first sign-in would lead into the account of this one.
  if (isMadeUserId(userId) && userId !== derivedUserId(identity)) {
    throw wrong(line, 'user_id has the form of ids that are made here, and is not that of this wallet')
  }
  return { wallet: identity, userId }
}

function readWallet(text: string, line: number, adapters: readonly WalletAdapter[]): ProvenIdentity {
  const ids = adapters.map(({ id }) => id)
  const id = ids.find((each) => text.startsWith(`${each}:`))
  if (id === undefined)
    throw wrong(line, `the wallet must begin with the id of a configured adapter (${ids.join(', ')})`)
  const [candidate] = readWalletName(text, ids)?.candidates ?? []
  if (candidate !== undefined) return candidate
  throw wrong(line, `this is no wallet of ${id}; if its address does not tell the key, write the public key in hex`)
}

function wrong(line: number, what: string): AdministrationError {
  return new AdministrationError(`line ${line}: ${what}; nothing was imported`)
}
