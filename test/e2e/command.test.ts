import { expect, test } from 'vitest'
import { freePort } from '../support/redis-server.ts'
import { rest } from '../support/rest.ts'
import { spawnService } from '../support/service.ts'

test('--port, --host and --store take precedence over variables, even over those that do not fit', async () => {
  const environment = { PORT: 'none', HOST: 'http://nowhere', COUNTERSIGN_STORE: 'mysql://nowhere' }
  const port = await freePort()
  const service = await spawnService(environment, [
    '--port',
    `${port}`,
    '--host=127.0.0.1',
    '--store',
    'sqlite::memory:',
  ])
  expect(service.url).toBe(`http://localhost:${port}`)
  expect(service.log()).toMatch(/"text":"ready".*"store":"SQLite in memory"/)
  expect((await rest(`http://127.0.0.1:${port}`, '/wallet/nonce', {})).status).toBe(200)
  expect(await service.stop()).toBe(0)
})
