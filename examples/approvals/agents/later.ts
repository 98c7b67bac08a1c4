import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js'
import { z } from 'zod'
import { ApprovalError, type Approvals, type ApprovalWallet } from '../../../src/integrations/approvals/index.ts'

/** Least time in milliseconds that a client waits for a tool. MCP's SDK: a minute. */
const patienceMs = 45_000

/** Who approves, from your own records: never from what an agent sends. */
export interface User {
  readonly userId: string
  readonly wallets: readonly ApprovalWallet[]
}

/**
 * An MCP server for clients that do not wait for a person: a tool asks, and answers with the link and a handle; another one
 * runs what was signed, once it was. A client that has MCP's elicitation by an address can open the link by itself.
 */
export function laterServer(approvals: Approvals, user: User) {
  const accounts: Record<string, number> = { yours: 100, bakery: 0 }
  const server = new McpServer({ name: 'later', version: '1.0.0' })
  const text = (said: string) => ({ content: [{ type: 'text' as const, text: said }] })

  server.registerTool(
    'ask_for_transfer',
    {
      description: 'Asks a person for a transfer from your account. Show the link, then call finish with the handle.',
      inputSchema: { to: z.string(), amount: z.number().positive() },
    },
    async ({ to, amount }) => {
      const action = { tool: 'transfer_money', to, amount }
      const { url, handle } = await approvals.ask({ ...user, title: `Transfer ${amount} to ${to}`, action })
      return text(JSON.stringify({ open: url, handle }))
    },
  )
  server.registerTool(
    'finish',
    { description: 'Makes a transfer that the person has approved.', inputSchema: { handle: z.string() } },
    async ({ handle }) => {
      const signal = AbortSignal.timeout(patienceMs)
      try {
        // The handle was out of this process's hands: the wallets are those of its own records.
        const approval = await approvals.resume(handle, { wallets: user.wallets })
        const decision = await approval.decision({ signal })
        if (!decision.approved) return text(`Not done: ${decision.why}`)
        const { to, amount } = decision.action as { to: string; amount: number }
        accounts.yours = (accounts.yours ?? 0) - amount
        accounts[to] = (accounts[to] ?? 0) + amount
        return text(`Transferred ${amount} to ${to}`)
      } catch (error) {
        if (error instanceof ApprovalError) return text(`Not done: ${error.reason}`)
        if (signal.aborted) return text('The person has not decided yet: call finish again.')
        throw error
      }
    },
  )
  return { server, accounts }
}
