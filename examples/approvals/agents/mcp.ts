// An MCP server with two tools that run only once its user has signed the call, and a client that plays the agent:
//   npm run example:approvals-mcp                approve in a browser
//   npm run example:approvals-mcp -- --approve   goes through by itself
// In a project of your own, import from 'countersign/approvals'.
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { InMemoryTransport } from '@modelcontextprotocol/sdk/inMemory.js'
import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js'
import { z } from 'zod'
import { startService } from '../service.ts'

const { guard, close } = await startService()
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

const [there, here] = InMemoryTransport.createLinkedPair()
const agent = new Client({ name: 'agent', version: '1.0.0' })
await Promise.all([server.connect(there), agent.connect(here)])

/** Calls a tool, for as long as a person may take. */
async function use(name: string, input: Record<string, unknown>): Promise<void> {
  const { content } = await agent.callTool({ name, arguments: input }, undefined, { timeout: 3_600_000 })
  console.log(`The agent got: ${JSON.stringify(content)}`)
}
await use('transfer_money', { to: 'bakery', amount: 25 })
await use('delete_repository', { name: 'archive' })
console.log(`Accounts: ${JSON.stringify(accounts)}, repositories: ${[...repositories].join(', ')}`)

await agent.close()
await close()
