// An MCP server that guards a command line, for any agent that mounts servers on standard input and output:
//   {"mcpServers": {"guarded": {"command": "node", "args": ["command-server.ts"], "env": {"SIGN_URL": "…", …}}}}
// A client that gives up, or goes, takes its call back: what the user signs after that does not run. The agent must have no
// other way to a command line. In a project of your own, import from 'countersign/approvals'.
import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js'
import { StdioServerTransport } from '@modelcontextprotocol/sdk/server/stdio.js'
import { z } from 'zod'
import { approvals, user } from './approver.ts'

const run = promisify(execFile)
const server = new McpServer({ name: 'guarded-command-line', version: '1.0.0' })

server.registerTool(
  'run_command',
  {
    description: 'Runs a command line, once a person has signed it on a phone. One line, no line breaks.',
    inputSchema: { command: z.string().max(300) },
  },
  async ({ command }, { signal }) => {
    const said = (text: string, isError = false) => ({ content: [{ type: 'text' as const, text }], isError })
    try {
      const action = { tool: 'run_command', command, folder: process.cwd() }
      const approval = await approvals.ask({ ...user, title: `Run ${command}`.slice(0, 120), action })
      // Beside the protocol, for the person.
      console.error(`Approve at ${approval.url}`)
      const decision = await approval.decision({ signal })
      signal.throwIfAborted()
      if (!decision.approved) return said(`Not run: ${decision.why}`, true)
      const { stdout, stderr } = await run('sh', ['-c', decision.action.command], { cwd: decision.action.folder })
      return said(stdout + stderr)
    } catch (error) {
      return said(`Not run, or failed: ${(error as Error).message}`, true)
    }
  },
)

// The agent is gone.
process.stdin.once('end', () => process.exit(0))
await server.connect(new StdioServerTransport())
