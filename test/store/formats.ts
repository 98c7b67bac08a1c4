import { chmodSync, readFileSync } from 'node:fs'
import { DatabaseSync } from 'node:sqlite'

/**
 * What a client of the service that wrote a file holds. Everything belongs to one wallet, and to the origin
 * https://app.example.
 */
export interface Holdings {
  /** Epoch milliseconds. The nonce and the orders live for minutes from then. */
  readonly madeAt: number
  readonly userId: string
  readonly address: string
  /** Of a session. */
  readonly token: string
  /** A nonce with a proof, as /wallet/verify takes it. */
  readonly signIn: object
  /** A login order that waits to be finalized. */
  readonly approved: object
  /** A login order that waits for its approval, and that, as /cross-device/approve takes it. */
  readonly waiting: { readonly orderId: string; readonly desktopToken: string; readonly approval: object }
}

/** The formats of files that today's service reads, oldest first: the releases that wrote them. */
export const formats: readonly string[] = ['0.1.0']

/** Makes a file as a service of a release left it. */
export function makeFile(path: string, format: string): Holdings {
  const database = new DatabaseSync(path)
  database.exec(`PRAGMA journal_mode = WAL; BEGIN; ${fixture(`${format}.sql`)} COMMIT`)
  database.close()
  chmodSync(path, 0o600)
  return JSON.parse(fixture(`${format}.json`))
}

function fixture(name: string): string {
  return readFileSync(new URL(`./fixtures/${name}`, import.meta.url), 'utf8')
}
