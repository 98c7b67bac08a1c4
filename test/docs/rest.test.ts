import { expect, test } from 'vitest'
import { endpoints } from '../../scripts/docs/services.ts'
import { startService } from '../support/service.ts'
import { executedSnippets, runShell } from '../support/snippets.ts'

const [nonce, events] = await executedSnippets('docs/rest.md')

test.each(endpoints)('$httpMethod $path is served, by its method alone', async ({ httpMethod, path }) => {
  const { url } = await startService()
  const call = async (method: string) => {
    const response = await fetch(`${url}/api/auth${path}`, { method })
    return ((await response.json()) as { code?: string }).code
  }
  expect(['ROUTE_NOT_FOUND', 'METHOD_NOT_ALLOWED']).not.toContain(await call(httpMethod))
  expect(await call(httpMethod === 'GET' ? 'POST' : 'GET')).toBe('METHOD_NOT_ALLOWED')
})

test('the call with a word of an enum answers a challenge', async () => {
  const { url } = await startService()
  const { stdout } = await runShell(nonce?.code ?? '', url)
  expect(JSON.parse(stdout)).toMatchObject({ action: 'auth.login', issuedAt: expect.any(Number) })
})

test('the long polls answer what the page shows', async () => {
  const { url } = await startService()
  const { stdout } = await runShell(events?.code ?? '', url)
  const lines = (events?.output ?? '')
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line))
  const [answered, ...more] = lines.map(({ events: shown }) => shown)
  expect(more).toEqual([[]])
  const answers = JSON.parse(`[${stdout.replaceAll('}{', '},{')}]`)
  expect(answers).toEqual([{ events: [{ ...answered[0], at: expect.any(Number) }] }, ...lines.slice(1)])
})
