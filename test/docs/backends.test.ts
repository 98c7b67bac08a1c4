import { expect, test } from 'vitest'
import type { RemoteSessionVerifierOptions } from '../../src/integrations/backend/index.ts'
import { signIn } from '../integrations/backend/support.ts'
import { run } from '../support/command.ts'
import { hasPart, systemPython } from '../support/optional.ts'
import { readFromRoot } from '../support/repository.ts'
import { startService } from '../support/service.ts'

const page = await readFromRoot('docs/backends.md')

/** The code blocks of a language that follow a text, the nearest first. */
function blocksAfter(text: string, language: string): string[] {
  const after = page.split(text)[1] ?? expect.fail(`docs/backends.md does not say ${text}`)
  return [...after.matchAll(new RegExp(`\`\`\`${language}\n([\\s\\S]*?)\`\`\``, 'g'))].map(([, code = '']) => code)
}

/** Lines of a block that are no import and no comment. */
function ownLines(code: string): string[] {
  return code.split('\n').filter((line) => line.trim() !== '' && !/^(import |\/\/)/.test(line))
}

test('the snippet for Express takes five lines at most, and is what the example runs', async () => {
  const [snippet = ''] = blocksAfter('**Express**', 'ts')
  expect(snippet).toContain("from 'countersign/backend/express'")
  const own = ownLines(snippet)
  expect(own.length).toBeGreaterThan(0)
  expect(own.length).toBeLessThanOrEqual(5)
  const example = (await readFromRoot('examples/backend/express.ts')).replace(/\s+/g, ' ')
  for (const line of own) expect(example).toContain(line.trim())
})

test.each(['fastify', 'hono', 'connect', 'grpc'])('the row of %s is what its example runs', async (name) => {
  const row = page.split('\n').find((line) => new RegExp(`^\\| [^|]*\`${name}\``).test(line)) ?? ''
  const [, guard = '', session = ''] = row.split(' | ').map((cell) => /^`(.*)`/.exec(cell)?.[1])
  const example = (await readFromRoot(`examples/backend/${name}.ts`)).replace(/\s+/g, ' ')
  expect(example).toContain(`/integrations/backend/${name}.ts'`)
  for (const code of [guard, session]) {
    expect(code).not.toBe('')
    expect(example).toContain(code)
  }
})

test('the table of options has all of them', () => {
  const options: Readonly<Record<keyof RemoteSessionVerifierOptions, true>> = {
    url: true,
    publicUrl: true,
    cacheSeconds: true,
    trustedOrigins: true,
    timeoutMs: true,
    warn: true,
    fetch: true,
    countersign: true,
  }
  const [table = ''] = /\| option [\s\S]*?\n\n/.exec(page) ?? []
  const rows = [...table.matchAll(/^\| `(\w+)`/gm)].map(([, name]) => name)
  expect([...rows, 'countersign'].sort()).toEqual(Object.keys(options).sort())
  expect(table).toContain('`countersign`')
})

test('the curl command answers as the page says', async () => {
  const { url } = await startService()
  const { token, session } = await signIn(url)
  const [command = ''] = blocksAfter('## Other languages', 'sh')
  const ask = async (with_: string): Promise<unknown> => {
    const here = command.replace('http://localhost:8080', url).replace('css_…', with_)
    expect(here).toContain(url)
    return JSON.parse((await run('sh', ['-c', here])).stdout)
  }
  expect(await ask(token)).toMatchObject({
    active: true,
    session: { id: session.id, userId: session.userId, expiresAt: String(session.expiresAt) },
  })
  expect(await ask('wrong')).toEqual({})
})

test.skipIf(!hasPart('python3-grpcio'))('the Python function tells a session, none, and an outage', async () => {
  const { url, service } = await startService()
  const { token, cookie, session } = await signIn(url)
  const code = await readFromRoot('examples/python/session.py')
  const ask = async (...given: string[]): Promise<string> => {
    const main = `import sys\nfound = session_of(*sys.argv[2:], url=sys.argv[1])\nprint(found["userId"] if found else found)`
    return (await run(systemPython, ['-c', `${code}\n${main}`, url, ...given])).stdout.trim()
  }
  expect(await ask(token)).toBe(session.userId)
  const [, value = ''] = cookie.split('=')
  expect(await ask(value, 'cookie')).toBe(session.userId)
  expect(await ask(value)).toBe('None')
  expect(await ask('wrong')).toBe('None')
  await service.close(0)
  await expect(ask(token)).rejects.toThrow('URLError')
})
