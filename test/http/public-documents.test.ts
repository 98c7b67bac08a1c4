import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import type { ServiceOptions } from '../../src/shared/rest-paths.ts'
import { startService } from '../support/service.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'

async function optionsOf(settings: Parameters<typeof startService>[0], basePath = '/api/auth') {
  const { url } = await startService(settings)
  const answer = await fetch(`${url}${basePath}/options`)
  expect(answer.status).toBe(200)
  return (await answer.json()) as ServiceOptions
}

test('the options say what the default settings offer', async () => {
  expect(await optionsOf({ publicUrl: 'http://localhost:8080' })).toEqual({
    appName: 'Countersign',
    adapters: ['nimiq', 'ed25519'],
    demoWallet: true,
    languages: ['en', 'de', 'es', 'ja'],
    parts: ['pages', 'account', 'wallets', 'open-orders'],
  })
})

test('the options follow the settings', async () => {
  const textsFile = join(temporaryFolder(), 'texts.json')
  await writeFile(textsFile, JSON.stringify({ fr: { 'start.title': 'Bonjour' } }))
  const found = await optionsOf(
    {
      publicUrl: 'https://auth.example',
      appName: 'Bakery',
      adapters: ['solana'],
      pages: { textsFile: textsFile },
      orderStartKeys: ['a-key-of-thirty-two-characters-or-more'],
      accessTokens: { audiences: ['https://api.example'] },
      resolveLogin: () => null,
      basePath: '/auth',
    },
    '/auth',
  )
  expect(found).toEqual({
    appName: 'Bakery',
    adapters: ['solana'],
    demoWallet: false,
    languages: ['en', 'de', 'es', 'ja', 'fr'],
    parts: ['pages', 'access-tokens'],
  })
})

test('pages of any origin read one answer, which may be cached for five minutes', async () => {
  const { url } = await startService()
  for (const origin of [undefined, url, 'https://foreign.example']) {
    const { headers } = await fetch(`${url}/api/auth/options`, { headers: origin === undefined ? {} : { origin } })
    expect(headers.get('access-control-allow-origin')).toBe('*')
    expect(headers.get('cache-control')).toBe('public, max-age=300')
  }
})
