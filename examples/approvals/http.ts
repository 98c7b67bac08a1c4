// A backend whose DELETE /files/{name} deletes only once its user has signed that:
//   node examples/approvals/http.ts            and approve in a browser
//   node examples/approvals/http.ts --approve  to see it go through by itself
// In a project of your own, import from 'countersign/approvals'.
import { once } from 'node:events'
import { mkdtemp, readdir, rm, writeFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { startService } from './service.ts'

const folder = await mkdtemp(join(tmpdir(), 'countersign-approvals-'))
await writeFile(join(folder, 'report.txt'), 'Figures')
const { guard, close } = await startService()

const server = createServer(async (request, response) => {
  const [, name] = /^\/files\/([\w.-]+)$/.exec(request.url ?? '') ?? []
  if (request.method !== 'DELETE' || name === undefined) {
    response.writeHead(404).end()
    return
  }
  try {
    const said = await guard(`Delete ${name}`, { action: 'delete', name }, async (action) => {
      await rm(join(folder, basename(action.name)))
      return `Deleted ${action.name}`
    })
    response.writeHead(said.startsWith('Deleted') ? 200 : 403, { 'content-type': 'text/plain' }).end(said)
  } catch (error) {
    // Such as a file that is not there. An error that leaves this function would end the process.
    console.error(error instanceof Error ? error.message : error)
    response.writeHead(500, { 'content-type': 'text/plain' }).end('Approved, and failed')
  }
})
await once(server.listen(0, 'localhost'), 'listening')

// The agent, which has nothing but this address.
const { port } = server.address() as AddressInfo
for (const name of ['report.txt', 'missing.txt']) {
  const answer = await fetch(`http://localhost:${port}/files/${name}`, { method: 'DELETE' })
  console.log(`The agent got ${answer.status}: ${await answer.text()}`)
}
console.log(`Files that are left: ${(await readdir(folder)).length}`)

server.close()
await close()
await rm(folder, { recursive: true })
