/** What commands do with the values of a kind that services keep in a store. */
interface Handling {
  /** Whether a copy of the past must not revive them: they may have been used, refused or ended since. */
  readonly past: 'drop' | 'drop with sessions' | 'keep'
  /** Whether `admin copy` takes them to another store. */
  readonly isCopied: boolean
}

/** What has begun and is over within minutes, and queues. */
const begun: Handling = { past: 'drop', isCopied: false }
/** What lasts until it is forgotten, used or ended. */
const held: Handling = { past: 'drop', isCopied: true }
const ofSessions: Handling = { past: 'drop with sessions', isCopied: true }
const lasting: Handling = { past: 'keep', isCopied: true }
/** What belongs to the one store: its secret, its mark, and what its probes leave behind. */
const ownOfStore: Handling = { past: 'keep', isCopied: false }

/**
 * Kinds of the values in a store, by the first part of their keys, and of the issuer by the first two. Lists are sets,
 * and made anew from these.
 */
export const storedKinds: Readonly<Record<string, Handling>> = {
  nonce: begun,
  'link-nonce': begun,
  order: begun,
  inbox: begun,
  webhook: begun,
  logout: begun,
  'oidc:AuthorizationCode': begun,
  'oidc:DeviceCode': begun,
  'oidc:DeviceUserCode': begun,
  'oidc:Interaction': begun,
  'oidc:PushedAuthorizationRequest': begun,
  computers: held,
  'oidc:AccessToken': held,
  'oidc:Grant': held,
  'oidc:RefreshToken': held,
  'oidc:ReplayDetection': held,
  session: ofSessions,
  'session-address': ofSessions,
  'clients-of': ofSessions,
  user: lasting,
  wallet: lasting,
  app: lasting,
  'apps-of': lasting,
  limit: lasting,
  'used-nonce': lasting,
  'used-link-nonce': lasting,
  'oidc:signing-keys': lasting,
  'oidc-rotate-key': lasting,
  secret: ownOfStore,
  'copy-mark': ownOfStore,
  ping: ownOfStore,
  doctor: ownOfStore,
}

/** The kind of the value under a key. It need not be one of {@link storedKinds}. */
export function kindOf(key: string): string {
  return /^(?:oidc:)?[^:]*/.exec(key)?.[0] as string
}

/**
 * Matches the keys that a restored copy must not revive. `prefix` is a regular expression of what precedes them. With
 * `keepSessions`, the keys of sessions do not match, not even those that have ended since.
 */
export function keysNotToRevive(keepSessions: boolean, prefix = ''): RegExp {
  const isPast = ({ past }: Handling): boolean => past === 'drop' || (past === 'drop with sessions' && !keepSessions)
  const keptOfIssuer = Object.keys(storedKinds).flatMap((kind) =>
    kind.startsWith('oidc:') && storedKinds[kind]?.past === 'keep' ? [kind.slice('oidc:'.length)] : [],
  )
  // The list of a user's sessions goes with them.
  const all = Object.entries({ ...storedKinds, sessions: ofSessions })
  const kinds = all.flatMap(([kind, handling]) => (isPast(handling) ? [kind] : []))
  // The library may make records of further kinds, which must not come back either.
  const ofIssuer = `oidc:(?!(?:${keptOfIssuer.join('|')}):)[A-Za-z-]+`
  return new RegExp(`^${prefix}(?:${[...kinds, ofIssuer].join('|')}):`)
}
