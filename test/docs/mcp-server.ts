import { writeFile } from 'node:fs/promises'
import { createServer, type IncomingMessage } from 'node:http'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { expect } from 'vitest'
import type { AuthInfo, ProtectedResource } from '../../src/integrations/backend/index.ts'
import { optionsFromEnvironment } from '../../src/service/config.ts'
import { json } from '../oidc/documents.ts'
import { fileWith } from '../oidc/support.ts'
import type { Internet } from '../support/internet.ts'
import { listening } from '../support/listening.ts'
import { readFromRoot } from '../support/repository.ts'
import { startService } from '../support/service.ts'
import { withSources } from '../support/snippets.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'
import { blocksOf } from './blocks.ts'

const blocks = blocksOf(await readFromRoot('docs/mcp.md'))
const textsIn = (name: string): string[] => blocks.filter(({ language }) => language === name).map(({ text }) => text)
const [clients = '', document = ''] = textsIn('json')
const [settings = ''] = textsIn('sh')
const [guarding = ''] = textsIn('js')

/**
 * The issuer of docs/mcp.md, and a server behind the page's guard, which says whose call it is. The resource is of this
 * address, by default that of the server.
 */
export async function startNotes(at?: string) {
  const server = createServer()
  const address = await listening(server)
  const resource = at ?? `${address}/mcp`
  const variables = Object.fromEntries(
    settings
      .trim()
      .split('\n')
      .map((line) => line.split('=', 2) as [string, string]),
  )
  const { publicUrl: _, ...options } = optionsFromEnvironment(variables)
  const file = fileWith(clients.replace('https://notes.example/mcp', resource))
  const { url } = await startService({ ...options, oidc: { ...options.oidc, clients: file } })
  const folder = temporaryFolder()
  const guardFile = join(folder, 'guard.mjs')
  const code = withSources(guarding).replace('https://auth.example', url).replace('https://notes.example/mcp', resource)
  await writeFile(guardFile, code)
  const { guard } = (await import(/* @vite-ignore */ pathToFileURL(guardFile).href)) as { guard: ProtectedResource }
  server.on('request', (request: IncomingMessage & { auth?: AuthInfo }, response) => {
    void guard.handle(request, response, () => {
      const { clientId, extra } = request.auth ?? expect.fail('no auth')
      response.end(JSON.stringify({ clientId, userId: extra.userId }))
    })
  })
  return { url, server: address, resource }
}

/** Puts the client with the document of docs/mcp.md on the internet, with other members if need be. */
export function putClient(internet: Internet, changes: object = {}): { readonly clientId: string } {
  const { client_id: clientId, ...others } = JSON.parse(document)
  internet.put(
    new URL(clientId).host,
    json(() => ({ client_id: clientId, ...others, ...changes })),
  )
  return { clientId }
}
