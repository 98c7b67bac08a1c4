/**
 * An application with Better Auth on SQLite and Countersign beside it: `node examples/better-auth/server.ts`, then open
 * the address that it prints. PORT and DATABASE (a file) are settings.
 */
import { readFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import { fileURLToPath } from 'node:url'
import { toNodeHandler } from 'better-auth/node'
import { build } from 'esbuild'
import { betterAuthHost } from '../../src/better-auth/index.ts'
import { createCountersign } from '../../src/index.ts'
import { auth, baseURL } from './auth.ts'

// For Connect clients; the sessions that come of them are Better Auth's. The approval page for phones is the plugin's.
const countersign = await createCountersign({
  appName: 'Better Auth example',
  publicUrl: baseURL,
  store: 'sqlite::memory:',
  pages: false,
  sessionHost: betterAuthHost(auth),
})

const here = (file: string): string => fileURLToPath(new URL(file, import.meta.url))
const { outputFiles } = await build({ entryPoints: [here('page.ts')], bundle: true, format: 'esm', write: false })
const files: Record<string, { type: string; content: string | Uint8Array }> = {
  '/': { type: 'text/html; charset=utf-8', content: await readFile(here('page.html')) },
  '/page.js': { type: 'text/javascript', content: outputFiles[0]?.contents ?? '' },
}

const betterAuthHandler = toNodeHandler(auth)
const server = createServer((request, response) => {
  const path = (request.url ?? '/').split('?')[0] ?? '/'
  const file = files[path]
  if (file !== undefined) response.setHeader('content-type', file.type).end(file.content)
  else if (path.startsWith('/api/auth/')) void betterAuthHandler(request, response)
  else countersign.handler(request, response)
})
server.listen(new URL(baseURL).port, () => console.log(`Open ${baseURL}`))
