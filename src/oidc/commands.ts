import type { Store } from '../store/store.ts'
import { openClientsIn, readClientsFile } from './clients.ts'
import { ConnectedApps, type StoredConnection } from './connected-apps.ts'

export { sessionEnds } from './session-ends.ts'

/** Number of clients of a clients file that anyone who signs in may use. */
export async function countOpenClients(file: string): Promise<number> {
  return openClientsIn((await readClientsFile(file)).clients)
}

/** Paths of the issuer's metadata (OpenID Connect Discovery 1.0, 4; RFC 8414, 3). */
export const discoveryPaths = ['/.well-known/openid-configuration', '/.well-known/oauth-authorization-server'] as const

/** Times of the issuer's keys, in ms. */
export const keyTimes = {
  /** Time for which a key is published before it signs: some applications keep the key set for so long. */
  publishMs: 1_800_000,
  /** Time between two looks of an instance for another RSA key, within which all instances publish one. */
  lookMs: 60_000,
}

/** Key in the store under which a command, which has no secret, asks the running services for a new RSA key. */
export const rotationKey = 'oidc-rotate-key'

/** Row of the commands of `countersign admin`. */
export const adminCommand = {
  name: 'oidc',
  takes: ['rotate-key'],
  about: 'makes a new RSA key for the OpenID Connect issuer, which signs half an hour later',
  async run({ store }: { readonly store: Store }) {
    await store.create(rotationKey, 'wanted', 'forever')
    const text = 'a running service makes the key within a minute, another one when it starts'
    return { json: { wanted: true }, text, changed: {} }
  },
} as const

/** A connected application, without the name of its connection and the sessions with offline access. */
export type ExportedApp = Omit<StoredConnection, 'connection' | 'offline'>

/** What the issuer keeps of a user: connected applications, and sessions with offline access. */
export async function exportUser(store: Store, userId: string) {
  const connected = new ConnectedApps(store)
  const found = await connected.of(userId)
  const apps = found.map(({ connection: _, offline: _offline, ...app }): ExportedApp => app)
  const sessions = found.flatMap((app) => connected.offlineOf(app))
  return { apps, offlineAccess: [...new Map(sessions.map((each) => [each.id, each])).values()] }
}

/** Erases what the issuer keeps of a user whose sessions have ended. */
export async function eraseUser(store: Store, userId: string): Promise<void> {
  await new ConnectedApps(store).erase(userId)
}

/** What the check of `countersign doctor` uses. */
interface Checked {
  readonly publicUrl: string
  readonly settings: { readonly oidc: { readonly clients?: string | undefined } }
}

/** Answer to a request of doctor. */
interface JsonAnswer {
  readonly status: number
  readonly json: Readonly<Record<string, unknown>>
}

/** Check of `countersign doctor`: applications find the issuer where its public address says that it is. */
export const issuerCheck = (ask: (address: string, question: object, signal: AbortSignal) => Promise<JsonAnswer>) => ({
  name: 'issuer',
  needs: ['public url'],
  applies: ({ settings }: Checked): boolean => settings.oidc.clients !== undefined,
  async run({ publicUrl }: Checked, signal: AbortSignal) {
    const address = publicUrl + discoveryPaths[0]
    const { status, json } = await ask(address, {}, signal)
    if (json.issuer === publicUrl) {
      const seconds = (keyTimes.publishMs / 1000).toLocaleString('en')
      const saw =
        `applications find the issuer at ${publicUrl}. When the secret changes, put the new one last ` +
        `in the list for ${seconds} s, and keep the old one for 90 days`
      return { status: 'ok', saw } as const
    }
    if (typeof json.issuer !== 'string') {
      return { status: 'problem', saw: `${address} answers ${status}, without an issuer` } as const
    }
    const fix = 'Correct COUNTERSIGN_PUBLIC_URL, or restart the service with it.'
    return { status: 'problem', saw: `${address} names another issuer`, fix } as const
  },
  advice:
    'Let the proxy pass on /.well-known/ and the paths under COUNTERSIGN_BASE_PATH, and restart the service with ' +
    'COUNTERSIGN_OIDC_CLIENTS.',
})
