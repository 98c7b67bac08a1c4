import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js'
import { z } from 'zod'
import type { Guard } from '../service.ts'

/**
 * An MCP server with two tools that run only once the user of `guard` has signed the call, and what they change. Over HTTP,
 * each request gets one, behind the check of docs/mcp.md.
 */
export function guardedServer(guard: Guard) {
  const accounts: Record<string, number> = { yours: 100, bakery: 0 }
  const repositories = new Set(['website', 'archive'])

  const server = new McpServer({ name: 'guarded', version: '1.0.0' })
  const text = (said: string) => ({ content: [{ type: 'text' as const, text: said }] })

  server.registerTool(
    'transfer_money',
    {
      description: 'Transfers money from your account. A person approves each transfer.',
      inputSchema: { to: z.string(), amount: z.number().positive() },
    },
    async ({ to, amount }) =>
      text(
        await guard(`Transfer ${amount} to ${to}`, { tool: 'transfer_money', to, amount }, (action) => {
          accounts.yours = (accounts.yours ?? 0) - action.amount
          accounts[action.to] = (accounts[action.to] ?? 0) + action.amount
          return `Transferred ${action.amount} to ${action.to}`
        }),
      ),
  )
  server.registerTool(
    'delete_repository',
    {
      description: 'Deletes a repository. A person approves each deletion.',
      inputSchema: { name: z.string() },
    },
    async ({ name }) =>
      text(
        await guard(`Delete the repository ${name}`, { tool: 'delete_repository', name }, (action) => {
          return repositories.delete(action.name) ? `Deleted ${action.name}` : `There is no ${action.name}`
        }),
      ),
  )
  return { server, accounts, repositories }
}
