import { readFileSync } from 'node:fs'
import { describe, expect, expectTypeOf, test } from 'vitest'
import { InboxService } from '../../gen/server/countersign/v1/inbox_service_pb.ts'
import { OrderService } from '../../gen/server/countersign/v1/order_service_pb.ts'
import { SessionService } from '../../gen/server/countersign/v1/session_service_pb.ts'
import { SignInService } from '../../gen/server/countersign/v1/sign_in_service_pb.ts'
import { WalletService } from '../../gen/server/countersign/v1/wallet_service_pb.ts'
import type * as api from '../../src/browser/client/api.ts'

/** What a new RPC needs beside its handler, so that one cheap run names every place. */

const services = [SignInService, OrderService, SessionService, WalletService, InboxService]
const rpcs = services.flatMap(({ methods }) => methods.map(({ localName }) => localName))

type Rpc =
  | keyof (typeof SignInService)['method']
  | keyof (typeof OrderService)['method']
  | keyof (typeof SessionService)['method']
  | keyof (typeof WalletService)['method']
  | keyof (typeof InboxService)['method']

type ClientCall = keyof (api.SignInApi & api.OrderApi & api.SessionApi & api.InboxApi & api.WalletApi)

/** RPCs that the browser client leaves out, and why. */
const leftOut = { introspectSession: 'for backends, which ask about the tokens of others' } as const

test('the browser client has every RPC but those that it leaves out on purpose', () => {
  expectTypeOf<Exclude<Rpc, ClientCall>>().toEqualTypeOf<keyof typeof leftOut>()
  // Its other calls: a nonce for adding a wallet.
  expectTypeOf<Exclude<ClientCall, Rpc>>().toEqualTypeOf<'issueLinkNonce'>()
})

describe('every RPC is in', () => {
  /** Tables by RPC, and those that a table leaves out. */
  const tables: readonly (readonly [file: string, leavesOut?: readonly string[]])[] = [
    ['test/e2e/rate-limits.test.ts'],
    ['test/integrations/approvals/agent.ts'],
    ['test/integrations/approvals/closure-table.ts'],
    // REST has no such call.
    ['test/openapi/requests.ts', ['introspectSession']],
  ]
  test.each(tables)('%s', (file, leavesOut = []) => {
    const text = readFileSync(new URL(`../../${file}`, import.meta.url), 'utf8')
    const missing = rpcs.filter((name) => !new RegExp(`\\b${name}\\b`, 'i').test(text))
    expect(missing).toEqual(leavesOut)
  })
})
