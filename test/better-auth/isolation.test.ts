import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { describe, expect, test } from 'vitest'

/** Writes the URL of every module that is loaded. */
const hooks = `data:text/javascript,${encodeURIComponent(`
  import { registerHooks } from 'node:module'
  registerHooks({
    load(url, context, next) {
      console.log(url)
      return next(url, context)
    },
  })
`)}`

/** The modules that a program loads. */
async function modulesOf(file: string): Promise<string[]> {
  const program = fileURLToPath(new URL(file, import.meta.url))
  const { stdout } = await promisify(execFile)(process.execPath, ['--import', hooks, program])
  return stdout.split('\n').filter((line) => /^(file|node):/.test(line))
}

const ofBetterAuth = /node_modules\/(@?better-(auth|call|fetch)|kysely|zod)\//

describe('Better Auth is loaded', () => {
  test.each([
    ['not by the server API', '../../src/index.ts'],
    ['not by the command', '../../src/service-command.ts'],
  ])('%s', async (_name, file) => {
    const modules = await modulesOf(file)
    // It looked: what these do load is there.
    expect(modules.some((url) => url.includes('/@connectrpc/connect/'))).toBe(true)
    expect(modules.filter((url) => ofBetterAuth.test(url))).toEqual([])
  })

  test('by its own import', async () => {
    const modules = await modulesOf('../../src/better-auth/index.ts')
    expect(modules.some((url) => ofBetterAuth.test(url))).toBe(true)
  })

  test('not by the client plugins, nor anything else that a browser has no use for', async () => {
    const modules = await modulesOf('../../src/better-auth/client/index.ts')
    const own = modules.filter((url) => !url.includes('/node_modules/'))
    expect(modules.filter((url) => ofBetterAuth.test(url))).toEqual([])
    expect(own.filter((url) => /\/src\/(store|host|http|rpc|wallet)\//.test(url))).toEqual([])
    expect(own.filter((url) => url.startsWith('node:'))).toEqual([])
  })
})
