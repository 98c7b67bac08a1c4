import { readFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import { delimiter, dirname, extname, join } from 'node:path'
import { listening } from '../support/listening.ts'

export const minuteMs = 60_000

/** The environment of npm and of what it installs: on the Node that runs this test. */
export const environment = {
  ...process.env,
  PATH: [dirname(process.execPath), process.env.PATH].join(delimiter),
  NODE_ENV: undefined,
}

const types: Readonly<Record<string, string>> = {
  '.css': 'text/css',
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript',
  '.svg': 'image/svg+xml',
}

/** Serves a folder, which may come to be later. Resolves with its origin. */
export async function serveFolder(folder: () => string): Promise<string> {
  const server = createServer(async ({ url = '/' }, response) => {
    const path = url === '/' ? '/index.html' : url
    const content = await readFile(join(folder(), path)).catch(() => undefined)
    response.writeHead(content === undefined ? 404 : 200, { 'content-type': types[extname(path)] ?? 'image/x-icon' })
    response.end(content)
  })
  return await listening(server, 'localhost')
}
