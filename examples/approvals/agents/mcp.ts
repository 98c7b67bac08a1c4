// An MCP server with two tools that run only once its user has signed the call, and a client that plays the agent:
//   npm run example:approvals-mcp                approve in a browser
//   npm run example:approvals-mcp -- --approve   goes through by itself
// In a project of your own, import from 'countersign/approvals'.
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { InMemoryTransport } from '@modelcontextprotocol/sdk/inMemory.js'
import { startService } from '../service.ts'
import { guardedServer } from './server.ts'

const { guard, close } = await startService()
const { server, accounts, repositories } = guardedServer(guard)
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
