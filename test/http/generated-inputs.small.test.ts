import { expect, test } from 'vitest'
import { keptLog } from '../support/log-lines.ts'
import type { RawRequest } from '../support/raw-http.ts'
import { startService } from '../support/service.ts'
import { mixedPlans } from '../wire/differential/requests.ts'
import { faultsOf, Seen } from './generated/answers.ts'
import { inputOf } from './generated/inputs.ts'
import { randomOf } from './generated/random.ts'
import { allRpcs } from './generated/rpcs.ts'
import { makeWorld } from './generated/world.ts'

const seed = 20261122

test('odd inputs, odd names and deep nesting among them, are all answered, none with a fault of the server', async () => {
  const { logger, lines } = keptLog()
  const { url } = await startService({
    trustProxy: 1,
    confirmationCode: 'return',
    accessTokens: { audiences: ['api'] },
    logger,
  })
  const [world, methods] = [await makeWorld(url), await allRpcs()]
  const all = mixedPlans(seed, 2000).map(
    (plan, number) => [number, inputOf({ random: randomOf(seed, number), world, plan, methods })] as const,
  )
  const some = (isWanted: (request: RawRequest) => boolean) =>
    all.filter(([, { request }]) => isWanted(request)).slice(0, 15)
  const inputs = [
    some(() => true),
    some(({ target, body }) => target.startsWith('/api/auth/') && body.length > 0),
    some(({ body }) => body.includes('__proto__')),
    some(({ body }) => body.includes('['.repeat(200))),
  ]
  expect(inputs.map(({ length }) => length)).toEqual([15, 15, 15, 15])
  expect(await faultsOf(url, inputs.flat(), new Seen())).toEqual([])
  expect(lines.filter(({ level }) => level === 'error')).toEqual([])
})
