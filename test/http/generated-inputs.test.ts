import { expect, test } from 'vitest'
import { Inspector } from '../support/inspector.ts'
import { bearer, okay, rest } from '../support/rest.ts'
import { spawnService } from '../support/service.ts'
import { temporaryStore } from '../support/temporary-folder.ts'
import { mixedPlans } from '../wire/differential/requests.ts'
import { exceptions, faultsOf, Seen, wayOf } from './generated/answers.ts'
import { contentTypesOf, inputOf } from './generated/inputs.ts'
import { randomOf } from './generated/random.ts'
import { allRpcs } from './generated/rpcs.ts'
import { makeWorld } from './generated/world.ts'

// Another one makes other inputs: say the seed to see a failure again.
const seed = Number(process.env.COUNTERSIGN_TEST_SEED ?? 20261122)
const startKey = 's'.repeat(32)
const inputCount = 30_000
/** Inputs that refer to the same orders and sessions. Afterwards there are new ones: inputs use them up. */
const batchSize = 1000
/** Inputs after which the service has compiled and cached what it is going to. */
const warmUpCount = 2000
/** Growth of the heap that is no leak. Of each input, 200 bytes would be more. */
const maxGrowthBytes = 4_000_000

test(`${inputCount} odd inputs over every protocol: all are answered, none with a fault of the server, and nothing grows`, {
  timeout: 300_000,
}, async () => {
  const COUNTERSIGN_STORE = temporaryStore()
  const service = await spawnService({
    COUNTERSIGN_STORE,
    // Or nobody would read what odd inputs say in X-Forwarded-For.
    COUNTERSIGN_TRUST_PROXY: '1',
    COUNTERSIGN_CONFIRMATION_CODE: 'return',
    COUNTERSIGN_ACCESS_TOKEN_AUDIENCES: 'api',
    NODE_OPTIONS: '--inspect=127.0.0.1:0',
  })
  // Only a service with start keys starts orders for an inbox. Both have one SQLite file:
  // each reads what the other wrote.
  const starting = await spawnService({
    COUNTERSIGN_STORE,
    COUNTERSIGN_ORDER_START_KEYS: startKey,
    COUNTERSIGN_TRUSTED_ORIGINS: service.url,
  })
  const startForInbox = async (inboxUserId: string) => {
    const order = { kind: 'sign', inboxUserId, payload: '{"pay":5}', requester: { origin: service.url } }
    return okay(await rest(starting.url, '/cross-device/start', order, bearer(startKey)))
  }
  const inspector = await Inspector.connect(service.log())
  const methods = await allRpcs()
  const plans = mixedPlans(seed, inputCount)
  const seen = new Seen()
  const faults: string[] = []
  let heapAfterWarmUp = 0
  for (let first = 0; first < inputCount && faults.length === 0; first += batchSize) {
    if (first === warmUpCount) heapAfterWarmUp = await inspector.heapUsed()
    const world = await makeWorld(service.url, startForInbox)
    const inputs = [...plans.entries()]
      .slice(first, first + batchSize)
      .map(([number, plan]) => [number, inputOf({ random: randomOf(seed, number), world, plan, methods })] as const)
    faults.push(...(await faultsOf(service.url, inputs, seen)))
  }
  expect(faults.slice(0, 3), `seed ${seed}: inputs with a fault`).toEqual([])
  expect(service.process.exitCode, service.log()).toBe(null)
  expect(linesAtLevelError(service.log()), `seed ${seed}`).toEqual([])
  await expect.poll(() => inspector.heapUsed(), { timeout: 5000 }).toBeLessThan(heapAfterWarmUp + maxGrowthBytes)

  expect(
    exceptions.filter((exception) => !seen.exceptions.has(exception)),
    'listed, but not found any more',
  ).toEqual([])
  // If the inputs did not get far, all of this would say little.
  const everyWay = methods.flatMap((method) =>
    contentTypesOf(method).flatMap((type) => [wayOf(method, type, '1.1'), wayOf(method, type, '2')]),
  )
  expect(everyWay.filter((way) => !seen.ways.has(way))).toEqual([])
  const unanswered = methods.filter((method) => !seen.served.has(method)).map(({ name }) => name)
  expect(unanswered, 'never answered with a message: makeWorld has to make what they need').toEqual([])
  expect([...seen.outcomes]).toEqual(
    expect.arrayContaining([
      'ok',
      'invalid_argument',
      'unauthenticated',
      'not_found',
      'failed_precondition',
      'resource_exhausted',
      'deadline_exceeded',
      '404',
      '405',
      '415',
    ]),
  )
  // Node waits for its debugger to leave.
  inspector.close()
  expect(await service.stop()).toBe(0)
})

function linesAtLevelError(log: string): string[] {
  return log.split('\n').filter((line) => line.includes('"level":"error"'))
}
