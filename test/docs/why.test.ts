import { expect, test } from 'vitest'
import { readFromRoot } from '../support/repository.ts'
import { expectNamedTests } from './named-tests.ts'

const [, after = ''] = (await readFromRoot('README.md')).split('## Why not 200 lines of siwe\n')
const [section = ''] = after.split('\n## ')

/** Each fault that README.md names, by its public sources, with the tests here that notice it. */
const faults: Readonly<Record<string, string>> = {
  'base/docs#1502': `
    \`test/core/wallet/ethereum/service.test.ts\`: "over %s is refused"
    \`test/core/wallet/form-nonce.test.ts\`: "is refused for a text that differs by a byte, in each of its lines"`,
  'base/docs#1452 wevm/wagmi#2052': `
    \`test/core/sign-in/nonce.test.ts\`: "a nonce that was never issued is not found"
    \`test/core/sign-in/nonce.test.ts\`: "an expired nonce is expired from that millisecond on"`,
  'blockmatic/basilic#89 better-auth/better-auth#7238': `
    \`test/e2e/sign-in.test.ts\`: "100 parallel verifies of one nonce make one session"
    \`test/core/wallet/form-nonce.test.ts\`: "is good once, and once for two proofs at the same time"`,
  'inblockio/aquafier-js#744': `
    \`test/core/wallet/ethereum/rpc.test.ts\`: "%s is away, which is never a wrong signature"
    \`test/core/wallet/ethereum/contracts.test.ts\`: "needs no RPC while its key signs, with any code"`,
  'exactly/exa#881': `
    \`test/core/wallet/ethereum/contracts.test.ts\`: "is another identity on another chain"
    \`test/core/wallet/ethereum/service.test.ts\`: "is not the wallet of an order for the same address on its own or on another chain"`,
}

test('each fault of other code has its public source, and tests that exist', () => {
  const links = [...section.matchAll(/\[([\w./-]+)#(\d+)\]\(https:\/\/github\.com\/\1\/(?:issues|pull)\/\2\)/g)]
  const sources = links.map(([, repository, number]) => `${repository}#${number}`)
  expect(sources).toEqual(Object.keys(faults).flatMap((names) => names.split(' ')))
  for (const [source, tests] of Object.entries(faults)) expect(expectNamedTests(tests), source).toBe(2)
})
