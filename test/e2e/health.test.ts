import { fileURLToPath } from 'node:url'
import * as grpc from '@grpc/grpc-js'
import { loadSync } from '@grpc/proto-loader'
import { expect, onTestFinished, test } from 'vitest'
import { RedisServer } from '../support/redis-server.ts'
import { startService } from '../support/service.ts'
import { redisUrl } from '../support/stores.ts'

/** gRPC's own health check, as a load balancer makes it. */
function healthClient(url: string): (service: string) => Promise<string | undefined> {
  const includeDirs = [fileURLToPath(new URL('../../proto', import.meta.url))]
  const definition = loadSync('grpc/health/v1/health.proto', { includeDirs, enums: String })
  // biome-ignore lint/suspicious/noExplicitAny: grpc-js makes clients without types.
  const loaded = grpc.loadPackageDefinition(definition) as any
  const client = new loaded.grpc.health.v1.Health(new URL(url).host, grpc.credentials.createInsecure())
  onTestFinished(() => client.close())
  return (service) =>
    new Promise((resolve, reject) => {
      client.check({ service }, (error: grpc.ServiceError | null, response: { status: string }) =>
        error === null ? resolve(response.status) : reject(error),
      )
    })
}

test('the server and each of its services are well', async () => {
  const check = healthClient((await startService()).url)
  expect(await check('')).toBe('SERVING')
  expect(await check('countersign.v1.OrderService')).toBe('SERVING')
  await expect(check('another.Service')).rejects.toMatchObject({ code: grpc.status.NOT_FOUND })
})

test.skipIf(redisUrl === undefined)('they are not while the store is away', async () => {
  await using redis = await RedisServer.start()
  const { url } = await startService({ store: redis.url, secret: 'a secret for tests and for nothing else' })
  const check = healthClient(url)
  expect(await check('')).toBe('SERVING')
  await redis.kill()
  expect(await check('')).toBe('NOT_SERVING')
})
