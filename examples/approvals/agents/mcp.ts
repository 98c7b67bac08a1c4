// MCP servers whose tools run only once their user has signed the call, and clients that play the agent:
//   npm run example:approvals-mcp                approve in a browser
//   npm run example:approvals-mcp -- --approve   goes through by itself
// In a project of your own, import from 'countersign/approvals'.
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { InMemoryTransport } from '@modelcontextprotocol/sdk/inMemory.js'
import { startService } from '../service.ts'
import { laterServer } from './later.ts'
import { guardedServer } from './server.ts'

const { approvals, user, guard, approve, close } = await startService()
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

// For clients that do not wait for a person: one tool asks, another one runs what was signed.
const later = laterServer(approvals, user)
const [farEnd, nearEnd] = InMemoryTransport.createLinkedPair()
const impatient = new Client({ name: 'agent', version: '1.0.0' })
await Promise.all([later.server.connect(farEnd), impatient.connect(nearEnd)])
const asked = await impatient.callTool({ name: 'ask_for_transfer', arguments: { to: 'bakery', amount: 10 } })
const [{ text: answer }] = asked.content as [{ text: string }]
const { open, handle } = JSON.parse(answer)
console.log(`Open ${open}`)
await approve(new URL(open).searchParams.get('order') ?? '')
for (;;) {
  const { content } = await impatient.callTool({ name: 'finish', arguments: { handle } })
  console.log(`The agent got: ${JSON.stringify(content)}`)
  if (!JSON.stringify(content).includes('not decided yet')) break
}
console.log(`Accounts: ${JSON.stringify(later.accounts)}`)

await agent.close()
await impatient.close()
await close()
