import type { DescMethod, DescService } from '@bufbuild/protobuf'
import { MethodOptions_IdempotencyLevel as Level } from '@bufbuild/protobuf/wkt'
import type { InboxService } from '../../gen/server/countersign/v1/inbox_service_pb.ts'
import type { OrderService } from '../../gen/server/countersign/v1/order_service_pb.ts'
import type { SessionService } from '../../gen/server/countersign/v1/session_service_pb.ts'
import type { SignInService } from '../../gen/server/countersign/v1/sign_in_service_pb.ts'
import type { WalletService } from '../../gen/server/countersign/v1/wallet_service_pb.ts'
import type { ProtoComments } from '../proto-comments.ts'
import { markdownOf, rpcComment } from './comments.ts'
import { code, markdownTable } from './markdown.ts'
import { endpoints, services } from './services.ts'

const page = 'protocol.md'

type Names<Service extends { readonly method: object }> = Exclude<keyof Service['method'], symbol | number>
type CallName =
  | Names<typeof SignInService>
  | Names<typeof WalletService>
  | Names<typeof OrderService>
  | Names<typeof InboxService>
  | Names<typeof SessionService>

/** What a retry does: the same, by the proto, or what is said here. */
interface CallRow {
  /** Who calls, and with what. */
  readonly by: string
  readonly retry?: string
}

const user = 'user'
const directUser = "user, signed in directly; with the cookie, from the service's own origin"
const freshUser = 'fresh user'
const phone = 'phone, challenge token'
const desktop = 'desktop, desktop token'

/** Every call, in the short form of the page's table. The comments in the protos have it whole. */
const calls: Readonly<Record<CallName, CallRow>> = {
  issueNonce: { by: 'page; for `link`, fresh user', retry: 'same' },
  verifySignIn: { by: 'same page, signature', retry: 'new nonce' },
  listWallets: { by: user },
  linkWallet: { by: freshUser, retry: 'new nonce' },
  unlinkWallet: { by: freshUser, retry: 'WALLET_NOT_FOUND' },
  startOrder: { by: 'desktop, or backend with start key; for `link`, fresh user', retry: 'another order' },
  previewOrder: { by: 'phone, claim token' },
  claimOrder: { by: 'phone, claim token', retry: 'same with `claim_key`' },
  getOrderChallenge: { by: phone },
  approveOrder: { by: phone },
  rejectOrder: { by: phone },
  cancelOrder: { by: desktop },
  finalizeOrder: { by: `${desktop}; for \`link\`, user`, retry: 'same for 60 seconds, or with `finalize_key`' },
  watchOrder: { by: desktop },
  handOverOrder: { by: phone, retry: 'another ticket' },
  redeemHandOver: { by: "phone's other browser, ticket", retry: 'same for 60 seconds with `claim_key`' },
  listInbox: { by: directUser },
  claimFromInbox: { by: directUser, retry: 'same with `claim_key`' },
  getCurrentSession: { by: user },
  signOut: { by: user },
  listSessions: { by: user },
  revokeSession: { by: user, retry: 'SESSION_NOT_FOUND' },
  revokeOtherSessions: { by: user },
  introspectSession: { by: 'backend' },
  listKnownComputers: { by: user },
  forgetKnownComputer: { by: user, retry: 'COMPUTER_NOT_FOUND' },
  listConnectedApps: { by: user },
  disconnectApp: { by: "user, from the service's own origin", retry: 'same' },
  issueAccessToken: { by: user, retry: 'another token' },
}

/** The parts of docs/protocol.md. Throws if the table and a proto disagree about a retry. */
export function protocolParts(comments: ProtoComments): Readonly<Record<string, string>> {
  const sections = services.map((service) => {
    const rows = service.methods.map((rpc) => callRow(rpc, comments))
    return `### ${service.name}\n\n${fileOf(service)}\n\n${markdownTable(['call', 'REST', 'by', 'retry', 'reasons'], rows)}`
  })
  return { 'the calls': sections.join('\n') }
}

function fileOf({ file }: DescService): string {
  const path = `${file.name}.proto`
  return `[${path.replace(/^.*\//, '')}](../proto/${path})`
}

function callRow(rpc: DescMethod, comments: ProtoComments): string[] {
  const { paragraphs, errors } = rpcComment(rpc, comments)
  const { by, retry } = calls[rpc.localName as CallName]
  const isSame = rpc.idempotency === Level.IDEMPOTENT
  if (retry === undefined && !isSame)
    throw new Error(`${rpc} is not idempotent: scripts/docs/protocol.ts says no retry`)
  const [first = ''] = paragraphs
  const does = first.slice(rpc.name.length + 1).replace(/\.(\s[\s\S]*)?$/, '')
  const endpoint = endpoints.find((each) => each.rpc === rpc)
  return [
    `<a id="${rpc.name.toLowerCase()}"></a>**${rpc.name}** ${markdownOf(does, page, rpc.name)}`,
    endpoint === undefined ? 'none' : code(`${endpoint.httpMethod} ${endpoint.path}`),
    by,
    markdownOf(retry ?? 'same', page),
    markdownOf(errors.replace(/\.$/, ''), page),
  ]
}
