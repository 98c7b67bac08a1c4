import { mkdtempSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { type CountersignClient, createCountersignClient, type Wallet } from '../../src/browser/client/index.ts'
import { codeOf, fetchFrom, MapStorage } from '../browser/client/support.ts'
import { minuteMs } from '../examples/tools.ts'
import { hasPart } from '../support/optional.ts'
import { spawnService } from '../support/service.ts'
import { deploySafe } from './accounts.ts'
import { type Chain, chainPackages, startHardhat } from './chain.ts'
import { install } from './packages.ts'

vi.setConfig({ testTimeout: minuteMs })

async function start(chain: Chain) {
  const { url } = await spawnService({
    COUNTERSIGN_ADAPTERS: 'nimiq,ethereum',
    COUNTERSIGN_EVM_RPC: `${chain.id}=${chain.url}`,
  })
  const client = (wallet: Wallet): CountersignClient =>
    createCountersignClient({ baseUrl: url, storage: new MapStorage(), fetch: fetchFrom(url), wallet })
  return { url, client }
}

describe.skipIf(!hasPart('npm registry'))("on Hardhat's chain", () => {
  const folder = mkdtempSync(join(tmpdir(), 'countersign-chain-'))
  let load: NodeJS.Require
  beforeAll(async () => {
    load = await install(folder, chainPackages)
  }, 15 * minuteMs)
  afterAll(() => rm(folder, { recursive: true, force: true }), 5 * minuteMs)

  test('a Safe of two owners signs in with both signatures, and not with one', async () => {
    const chain = await startHardhat(load)
    const { address, owners, wallet, signedBy } = await deploySafe(load, chain)
    const { client } = await start(chain)
    expect(await codeOf(client(signedBy(owners.slice(0, 1))).signInWallet())).toBe('SIGNATURE_INVALID')
    expect((await client(wallet).signInWallet()).session.address).toBe(`eip155:${chain.id}:${address}`)
  })
})
