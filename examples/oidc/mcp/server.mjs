// An MCP server with a tool, behind the guard.mjs of docs/mcp.md: it sees in `authInfo` whose call it is.
// Needs `npm install @modelcontextprotocol/sdk countersign`.
import { createServer } from 'node:http'
import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js'
import { StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js'
import { guard } from './guard.mjs'

function notes() {
  const server = new McpServer({ name: 'notes', version: '1.0.0' })
  server.registerTool('who', { description: 'Whose notes these are' }, ({ authInfo }) => ({
    content: [{ type: 'text', text: `${authInfo.extra.userId} by ${authInfo.clientId}` }],
  }))
  return server
}

async function serve(request, response) {
  const transport = new StreamableHTTPServerTransport({ sessionIdGenerator: undefined })
  response.once('close', () => transport.close())
  await notes().connect(transport)
  await transport.handleRequest(request, response)
}

createServer((request, response) => {
  guard.handle(request, response, () => serve(request, response)).catch((error) => response.destroy(error))
}).listen(3000)
