import { expect, test } from 'vitest'
import { bundleClient, clientEntries, sizeOf } from '../../../scripts/build-client.ts'
import type { HubOptions } from '../../../src/browser/wallets/index.ts'

const wallets = { entryPoints: ['src/browser/wallets/index.ts'] }

test('the wallets reach nothing but their own folder, the client and two libraries', async () => {
  const { metafile, code } = await bundleClient(wallets)
  const allowed =
    /^(src\/shared\/(adapters|defined-fields|wallet-address|texts\/(chooser|german-element))\.ts$|src\/browser\/(wallets\/|client\/(call|custom-element|errors|listeners|page|translation|wallet|wallet-answer)\.ts$)|(.*\/)?node_modules\/(mipd|@wallet-standard\/app)\/)/
  expect(Object.keys(metafile.inputs).filter((path) => !allowed.test(path))).toEqual([])
  expect(sizeOf(code).gzip).toBeLessThan(14_300)
})

test('the client has none of it', async () => {
  for (const { name, source } of clientEntries) {
    const { metafile } = await bundleClient(source)
    const paths = Object.keys(metafile.inputs).filter((path) => /browser\/wallets\/|mipd|@wallet-standard/.test(path))
    expect(paths, name).toEqual([])
  }
})

test("the Nimiq Hub's library is what the options take, as Node and as bundlers import it", async () => {
  const load: HubOptions['load'] = () => import('@nimiq/hub-api')
  const { default: found } = await load()
  const Hub = 'default' in found ? found.default : found
  expect(Hub.RequestType.SIGN_MESSAGE).toBe('sign-message')
  expect([typeof Hub.PopupRequestBehavior, typeof Hub.RedirectRequestBehavior]).toEqual(['function', 'function'])
})
