/**
 * What the examples have in common: a service of their own, whose store is gone afterwards, and its user. With
 * `--approve`, a demo wallet in this process is the user's, and approves. Without, you are the user, in a browser.
 */

import { createInterface } from 'node:readline/promises'
import { createCountersign } from '../../src/index.ts'
import {
  type Approval,
  ApprovalError,
  type Approvals,
  type ApprovalWallet,
  createApprovals,
} from '../../src/integrations/approvals/index.ts'
import { approveInInbox, makeWallet, signIn } from './wallet-holder.ts'

/** The user who approves, from the backend's own records: never from what an agent sends. */
interface Approver {
  readonly userId: string
  readonly wallets: readonly ApprovalWallet[]
}

/** Runs an action once the user has signed it. Resolves with what is to be told to the agent. */
export type Guard = <Action>(
  title: string,
  action: Action,
  run: (action: Action) => string | Promise<string>,
) => Promise<string>

/**
 * Starts a service, and waits for its user. Who runs the example names the wallet that may approve, as a backend has it
 * in its configuration or records: the first who signs in can be anyone.
 */
export async function startService() {
  const startKey = crypto.randomUUID() + crypto.randomUUID()
  const appName = 'Approvals example'
  const signedIn = new Map<string, Approver>()
  const service = await createCountersign({
    store: 'sqlite::memory:',
    port: 0,
    host: 'localhost',
    appName,
    orderStartKeys: [`agent=${startKey}`],
    onAuditEvent: (event) => {
      if (event.type !== 'sign_in.succeeded') return
      const { userId, adapterId, address } = event
      signedIn.set(address, { userId, wallets: [{ adapterId, address }] })
    },
  })
  await service.listen()
  const url = service.publicUrl
  const isAutomatic = process.argv.includes('--approve')
  const wallet = makeWallet()
  const token = isAutomatic ? await signIn(url, wallet) : undefined
  const user = isAutomatic ? only(signedIn) : await named(signedIn, url)
  const approvals = createApprovals({ url, startKey, appName, origin: url })

  /** Has the demo wallet approve an order, with `--approve`. */
  const approve = async (orderId: string): Promise<void> => {
    if (token !== undefined) await approveInInbox({ url, wallet, token, orderId })
  }
  const guard = guardOf(approvals, user, (approval) => void approve(approval.id))
  return { approvals, user, guard, approve, close: () => service.close(1000) }
}

function only(signedIn: ReadonlyMap<string, Approver>): Approver {
  const [user, ...others] = signedIn.values()
  if (user === undefined || others.length > 0) throw new Error('Not one user has signed in')
  return user
}

/** The user with the address that is typed. */
async function named(signedIn: ReadonlyMap<string, Approver>, url: string): Promise<Approver> {
  console.log(`Sign in with the demo wallet: ${url}/api/auth/sign-in`)
  const terminal = createInterface({ input: process.stdin, output: process.stdout })
  try {
    for (;;) {
      const typed = await terminal.question(`Address of your wallet, from ${url}/api/auth/account: `)
      const user = signedIn.get(typed.trim())
      if (user !== undefined) return user
      console.log('This wallet has not signed in.')
    }
  } finally {
    terminal.close()
  }
}

/** Lets actions of one user run, and says where they wait for the user. */
export function guardOf(approvals: Approvals, user: Approver, onAsked?: (approval: Approval) => void): Guard {
  return async (title, action, run) => {
    try {
      const approval = await approvals.ask({ ...user, title, action })
      console.log(`"${title}" waits for your approval: ${approval.url}`)
      onAsked?.(approval)
      const decision = await approval.decision()
      if (!decision.approved) return `Not done: ${decision.why}`
      console.log(`Signed by ${decision.wallet.address}`)
      // The action as it was signed, and not the one that was asked for.
      return await run(decision.action)
    } catch (error) {
      if (error instanceof ApprovalError) return `Not done: ${error.reason}`
      throw error
    }
  }
}
