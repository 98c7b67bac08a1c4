import { readdir } from 'node:fs/promises'
import type { DescService } from '@bufbuild/protobuf'
import { createConnectRouter } from '@connectrpc/connect'
import { expect, test } from 'vitest'
import { startService } from '../support/service.ts'

const folder = new URL('../../gen/server/countersign/v1/', import.meta.url)

/** Every service that the generated code of package countersign.v1 has, in whatever file. */
async function services(): Promise<DescService[]> {
  const files = (await readdir(folder)).filter((name) => name.endsWith('_pb.ts'))
  const modules: object[] = await Promise.all(files.map((name) => import(new URL(name, folder).href)))
  return modules.flatMap((each) => Object.values(each)).filter((each) => each?.kind === 'service')
}

test('every RPC of every service of package countersign.v1 is served', async () => {
  const { service } = await startService()
  const router = createConnectRouter()
  service.routes(router)
  const served = router.handlers.map(({ requestPath }) => requestPath)
  const declared = (await services()).flatMap(({ typeName, methods }) =>
    methods.map(({ name }) => `/${typeName}/${name}`),
  )
  expect(declared.length).toBeGreaterThan(10)
  expect(served.sort()).toEqual(declared.sort())
})
