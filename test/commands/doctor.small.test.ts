import { DatabaseSync } from 'node:sqlite'
import { expect, test } from 'vitest'
import type { Result } from '../../src/commands/doctor/check.ts'
import { doctorCommand } from '../../src/commands/doctor/doctor.ts'
import { Signer } from '../core/order/support.ts'
import { runHereIn } from '../support/command.ts'
import { freePort } from '../support/redis-server.ts'
import { rest } from '../support/rest.ts'
import { startService } from '../support/service.ts'
import { temporaryStore } from '../support/temporary-folder.ts'

/** All that a SQLite file has. */
function dump(file: string): unknown {
  const database = new DatabaseSync(file, { readOnly: true })
  try {
    return ['entries', 'members'].map((table) => database.prepare(`SELECT * FROM ${table} ORDER BY 1, 2`).all())
  } finally {
    database.close()
  }
}

test('a running service is fit, and its users notice nothing of the look', async () => {
  const store = temporaryStore()
  const port = await freePort()
  const { url } = await startService({ store, port, host: 'localhost' })
  const { json } = await rest(url, '/wallet/nonce', {}, { origin: url })
  const file = store.slice('sqlite:'.length)
  const before = dump(file)

  const env = { COUNTERSIGN_STORE: store, PORT: String(port) }
  const { code, stdout } = await runHereIn(env, doctorCommand, ['--json'])
  const { checks }: { checks: readonly Result[] } = JSON.parse(stdout)

  expect(checks.map(({ check, status }) => `${check}: ${status}`)).toEqual([
    'node: ok',
    'configuration: ok',
    'store: ok',
    'disk: ok',
    'clock: ok',
    'people: ok',
    'port: ok',
    'public url: ok',
    'readiness: ok',
    'forwarded headers: ok',
    'origins: ok',
  ])
  expect(code).toBe(0)
  expect(dump(file)).toEqual(before)
  const proof = { nonceId: json.nonceId, ...new Signer().prove(json.message) }
  expect((await rest(url, '/wallet/verify', proof, { origin: url })).status).toBe(200)
})
