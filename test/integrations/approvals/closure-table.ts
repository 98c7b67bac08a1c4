import type { Holding } from './agent.ts'

/**
 * What becomes of an agent's call of a route, for each thing that it may hold: the reason or status of the refusal, or
 * why it does no harm. Harm is an order that is approved without its user, or a wallet that the user did not add.
 */
export type Row = Readonly<Record<Holding, string>>

export const everyone = (says: string): Row => ({
  nothing: says,
  'start key': says,
  'desktop token': says,
  'approval URL': says,
  "the user's token": says,
  'own wallet': says,
})

/** A call for a session's user. Neither a start key nor a token of an order is one. */
const forSessions = (user: string, own: string): Row => ({
  nothing: 'SESSION_REQUIRED',
  'start key': 'SESSION_INVALID',
  'desktop token': 'SESSION_INVALID',
  'approval URL': 'SESSION_REQUIRED',
  "the user's token": user,
  'own wallet': own,
})

/** A call with a token of one side of an order. */
const forHolders = (others: Partial<Row> = {}): Row => ({
  ...everyone('ORDER_TOKEN_INVALID'),
  nothing: 'ORDER_NOT_FOUND',
  ...others,
})

const readsOwn = 'harmless: reads what is the session’s own'
const endsSessions = 'harmless: ends sessions, and an approval needs the wallet, not a session'
const reads = 'harmless: reads the order, as its user may; the wallet has not signed'

/** The RPCs, each at its own path and by REST. The user's session is eleven minutes old. */
export const rpcs: Readonly<Record<string, Row>> = {
  'SignInService/IssueNonce': forSessions('SESSION_NOT_FRESH', 'harmless: a text that adds a wallet to its own user'),
  'SignInService/VerifySignIn': everyone('harmless: signs in as a user of its own, whose wallet is nobody else’s'),
  'WalletService/ListWallets': forSessions(readsOwn, readsOwn),
  'WalletService/LinkWallet': forSessions('SESSION_NOT_FRESH', 'harmless: adds a wallet to its own user'),
  'WalletService/UnlinkWallet': forSessions('SESSION_NOT_FRESH', 'WALLET_NOT_FOUND'),
  'OrderService/StartOrder': {
    ...everyone('START_KEY_REQUIRED'),
    'start key': 'harmless: another order waits in the inbox, for whose answer no backend asks',
  },
  // An order for an inbox has no claim token.
  'OrderService/PreviewOrder': forHolders(),
  'OrderService/ClaimOrder': forHolders(),
  'OrderService/GetOrderChallenge': forHolders({ "the user's token": reads }),
  'OrderService/ApproveOrder': forHolders({ "the user's token": 'WRONG_WALLET' }),
  'OrderService/RejectOrder': forHolders({ "the user's token": 'harmless: declines, so that the action does not run' }),
  'OrderService/HandOverOrder': forHolders({
    "the user's token": 'harmless: another browser may ask its wallet, which is not the user’s',
  }),
  'OrderService/RedeemHandOver': { ...everyone('HANDOVER_INVALID'), "the user's token": reads },
  'OrderService/CancelOrder': forHolders({ 'desktop token': 'harmless: cancels, so that the action does not run' }),
  // Once the user has approved, it takes the answer away from the backend, which does not take it from an agent.
  'OrderService/FinalizeOrder': forHolders({ 'desktop token': 'ORDER_NOT_APPROVED' }),
  'OrderService/WatchOrder': forHolders({ 'desktop token': 'harmless: sees whether the order is approved' }),
  'InboxService/ListInbox': forSessions(readsOwn, readsOwn),
  'InboxService/ClaimFromInbox': forSessions(
    'harmless: takes the order from the user’s page, which takes it again; the wallet has not signed',
    'ORDER_NOT_FOUND',
  ),
  'SessionService/GetCurrentSession': forSessions(readsOwn, readsOwn),
  'SessionService/ListSessions': forSessions(readsOwn, readsOwn),
  'SessionService/RevokeSession': forSessions(endsSessions, 'SESSION_NOT_FOUND'),
  'SessionService/RevokeOtherSessions': forSessions(endsSessions, endsSessions),
  'SessionService/SignOut': everyone('harmless: ends the session that is sent, if it is one'),
  'SessionService/IssueAccessToken': forSessions(
    'harmless: a token for backends, which no call of the service takes',
    'harmless: a token for backends, which no call of the service takes',
  ),
  'SessionService/IntrospectSession': everyone('harmless: says whether what is sent is a session, and whose'),
  'SessionService/ListKnownComputers': forSessions(readsOwn, readsOwn),
  'SessionService/ForgetKnownComputer': forSessions('COMPUTER_NOT_FOUND', 'COMPUTER_NOT_FOUND'),
  'SessionService/ListConnectedApps': forSessions(readsOwn, readsOwn),
  'SessionService/DisconnectApp': forSessions(endsSessions, endsSessions),
  'Health/Check': everyone('harmless: says whether the service is up'),
  'Health/List': everyone('harmless: says whether the service is up'),
  'Health/Watch': everyone('harmless: says whether the service is up'),
}

/** Orders that an agent starts as the service's own pages do. A start key makes each a backend's, which says for whom. */
export const ownPageOrders: readonly { readonly input: Readonly<Record<string, string>>; readonly row: Row }[] = [
  {
    input: { kind: 'ORDER_KIND_LOGIN' },
    row: {
      ...everyone('harmless: a sign-in without words, which makes a session and approves no action'),
      'start key': 'INVALID_REQUEST',
    },
  },
  {
    input: { kind: 'ORDER_KIND_LOGIN', displayTitle: 'Approve the deployment' },
    row: { ...everyone('START_KEY_REQUIRED'), 'start key': 'INVALID_REQUEST' },
  },
  {
    input: { kind: 'ORDER_KIND_LOGIN', adapterId: 'nimiq' },
    row: { ...everyone('START_KEY_REQUIRED'), 'start key': 'INVALID_REQUEST' },
  },
  {
    input: { kind: 'ORDER_KIND_LINK' },
    row: forSessions('SESSION_NOT_FRESH', 'harmless: asks for a wallet for its own user'),
  },
]

/** A route that is no RPC. */
export interface OtherRoute {
  readonly method: 'GET' | 'POST'
  /** Parameters of the query or the form. */
  readonly parameters?: Readonly<Record<string, string>>
  readonly row: Row
}

const published = (says: string): OtherRoute => ({ method: 'GET', row: everyone(`harmless: ${says}`) })
const oidc = '/api/auth/oidc'
const client = { client_id: 'shop', redirect_uri: 'https://shop.example/callback' }
/** Calls of clients, which prove themselves by a secret of their own. A bearer token is a malformed proof. */
const forClients = (parameters: Readonly<Record<string, string>>): OtherRoute => ({
  method: 'POST',
  parameters: { ...client, ...parameters },
  row: { ...everyone('400'), nothing: '401', 'approval URL': '401' },
})

/** The other routes of the router, and the issuer's with an id in the path. */
export const others: Readonly<Record<string, OtherRoute>> = {
  '/healthz': published('says whether the service is up'),
  '/readyz': published('says whether the store is up'),
  '/api/auth/forward-auth': {
    method: 'GET',
    row: {
      ...everyone('401'),
      "the user's token": 'harmless: says who the session’s user is',
      'own wallet': 'harmless: says who its own user is',
    },
  },
  '/.well-known/jwks.json': published('public keys'),
  '/api/auth/.well-known/jwks.json': published('public keys'),
  '/openapi.json': published('a description of the calls'),
  '/api/auth/openapi.json': published('a description of the calls'),
  '/api/auth/options': published('what pages may offer'),
  [`${oidc}/token`]: forClients({ grant_type: 'authorization_code', code: 'x' }),
  [`${oidc}/introspect`]: forClients({ token: 'x' }),
  [`${oidc}/revoke`]: forClients({ token: 'x' }),
  [`${oidc}/par`]: forClients({ response_type: 'code' }),
  [`${oidc}/device/auth`]: forClients({ scope: 'openid' }),
  '/device': { method: 'GET', row: everyone('harmless: a page that asks for the code of a device, and for a sign-in') },
  // It takes access tokens of its own clients only.
  [`${oidc}/userinfo`]: { method: 'GET', row: everyone('401') },
  [`${oidc}/authorize`]: {
    method: 'GET',
    parameters: { ...client, response_type: 'code', scope: 'openid' },
    row: everyone('harmless: leads back with an error, and to a client with a code of its own user at most'),
  },
  [`${oidc}/logout`]: { method: 'GET', row: everyone('harmless: a page that asks before it ends a session') },
  [`${oidc}/jwks.json`]: published('public keys'),
  '/.well-known/openid-configuration': published('addresses of the issuer'),
  '/.well-known/oauth-authorization-server': published('addresses of the issuer'),
  // Both go on in the browser only that began them, by its cookie.
  [`${oidc}/authorize/AAAAAAAAAAAAAAAAAAAAA`]: { method: 'GET', row: everyone('400') },
  [`${oidc}/interaction/AAAAAAAAAAAAAAAAAAAAA`]: { method: 'GET', row: everyone('400') },
}

/** Each page by an address of it: the same files for all, without a state; their scripts use the calls above. */
export const pages: Readonly<Record<string, string>> = {
  approve: '/c/AAAAAAAAAAAAAAAAAAAAAA',
  demo: '/',
  'sign-in': '/api/auth/sign-in',
  account: '/api/auth/account',
  inbox: '/api/auth/inbox',
  issuer: `${oidc}/logout`,
  'not-found': '/nowhere',
}
