import { describe, expect, test } from 'vitest'
import { modulesOf as modulesOfProgram } from '../support/loaded-modules.ts'

/** The modules that a program loads. */
const modulesOf = (file: string): Promise<string[]> => modulesOfProgram(new URL(file, import.meta.url))

const ofBetterAuth = /node_modules\/(@?better-(auth|call|fetch)|kysely|zod)\//

describe('Better Auth is loaded', () => {
  test.each([
    ['not by the server API', '../../src/index.ts'],
    ['not by the command', '../../src/commands/service.ts'],
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
    const modules = await modulesOf('../../src/browser/better-auth/index.ts')
    const own = modules.filter((url) => !url.includes('/node_modules/'))
    expect(modules.filter((url) => ofBetterAuth.test(url))).toEqual([])
    expect(own.filter((url) => /\/src\/(store|core|http|rpc|wire)\//.test(url))).toEqual([])
    expect(own.filter((url) => url.startsWith('node:'))).toEqual([])
  })
})
