import { expect, test } from 'vitest'
import { optionsFromEnvironment } from '../../src/service/config.ts'
import { clientsFile, fileWith, shop } from '../oidc/support.ts'
import { readFromRoot } from '../support/repository.ts'
import { rest } from '../support/rest.ts'
import { startService } from '../support/service.ts'
import { makeWallet, proofOf } from '../support/wallet.ts'

const page = await readFromRoot('docs/private-applications.md')
const blocks = (language: string): string[] =>
  [...page.matchAll(new RegExp(`\`\`\`${language}\n([^\`]*)\`\`\``, 'g'))].map(([, text = '']) => text)

test.each(['forward auth', 'the issuer'])(
  'six settings of the page let its people in and no one else, for %s',
  async (use) => {
    const [written = ''] = blocks('sh')
    const settings =
      use === 'the issuer'
        ? written.replace(/^COUNTERSIGN_TRUSTED_ORIGINS=.*$/m, /COUNTERSIGN_OIDC_CLIENTS=[^`]+/.exec(page)?.[0] ?? '')
        : written
    const wallet = makeWallet()
    const [json = ''] = blocks('json')
    const people = fileWith({ ...JSON.parse(json), [`nimiq:${wallet.address}`]: {} })
    const variables = Object.fromEntries(
      settings
        .trim()
        .split('\n')
        .map((line) => line.replaceAll('"', '').split('=', 2) as [string, string]),
    )
    expect(Object.keys(variables)).toHaveLength(6)
    const files = {
      COUNTERSIGN_PEOPLE: people,
      ...('COUNTERSIGN_OIDC_CLIENTS' in variables ? { COUNTERSIGN_OIDC_CLIENTS: clientsFile(shop) } : {}),
    }
    const { url } = await startService(optionsFromEnvironment({ ...variables, ...files }))
    const origin = 'https://auth.example'
    const statusOf = async (one = makeWallet()) => {
      const challenge = (await rest(url, '/wallet/nonce', {}, { origin })).json
      return (await rest(url, '/wallet/verify', proofOf(one, challenge), { origin })).status
    }
    expect([await statusOf(wallet), await statusOf()]).toEqual([200, 403])
  },
)
