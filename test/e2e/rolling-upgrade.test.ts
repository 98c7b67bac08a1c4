import { execFileSync, spawnSync } from 'node:child_process'
import { symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { PassThrough, Readable } from 'node:stream'
import { fileURLToPath } from 'node:url'
import { beforeAll, describe, expect, onTestFinished, test, vi } from 'vitest'
import { runCommand } from '../../src/commands/command.ts'
import { makeComputer } from '../support/computer.ts'
import { rest } from '../support/rest.ts'
import { type ServiceProcess, spawnService } from '../support/service.ts'
import { redisUrl } from '../support/stores.ts'
import { folderOfFile } from '../support/temporary-folder.ts'
import { makeWallet, proofOf, type TestWallet } from '../support/wallet.ts'

/** The commit of the release before this one. There is none yet, so this commit takes its place. */
const formerRelease = 'HEAD'

const root = fileURLToPath(new URL('../..', import.meta.url))
const git = ['-C', root]
const hasFormerRelease = spawnSync('git', [...git, 'cat-file', '-e', `${formerRelease}^{commit}`]).status === 0
if (!hasFormerRelease) {
  process.stderr.write(`SKIPPED: the tests of rolling upgrades, because commit ${formerRelease} is not in this clone\n`)
}

const folder = folderOfFile()
beforeAll(() => {
  if (!hasFormerRelease) return
  const files = execFileSync('git', [...git, 'archive', formerRelease, 'src', 'gen', 'package.json'], {
    maxBuffer: 100_000_000,
  })
  execFileSync('tar', ['-x', '-C', folder], { input: files })
  symlinkSync(join(root, 'node_modules'), join(folder, 'node_modules'))
})

const origin = { origin: 'https://app.example' }
const bearer = (token: string) => ({ ...origin, authorization: `Bearer ${token}` })

/** A service of each release on one store. */
interface Pair {
  readonly former: ServiceProcess
  readonly today: ServiceProcess
  /** What the keys of both begin with. */
  readonly keyPrefix: string
}

async function startBoth(store: string): Promise<Pair> {
  const keyPrefix = `rolling-${crypto.randomUUID()}`
  const environment = {
    COUNTERSIGN_STORE: store,
    COUNTERSIGN_SECRET: 'a secret for tests and for nothing else',
    COUNTERSIGN_KEY_PREFIX: keyPrefix,
    COUNTERSIGN_TRUSTED_ORIGINS: origin.origin,
    COUNTERSIGN_CONFIRMATION_CODE: 'return',
  }
  // What only today's release writes to the store.
  const webhooks = {
    COUNTERSIGN_WEBHOOK_URL: 'http://127.0.0.1:9/',
    COUNTERSIGN_WEBHOOK_SECRET: `whsec_${Buffer.alloc(32, 1).toString('base64')}`,
  }
  const [former, today] = await Promise.all([
    spawnService(environment, [], join(folder, 'src/main.ts')),
    spawnService({ ...environment, ...webhooks }),
  ])
  return { former, today, keyPrefix }
}

async function call(service: ServiceProcess, path: string, body?: object, headers: Record<string, string> = origin) {
  const { status, json } = await rest(service.url, path, body, headers)
  expect(status, `${path}: ${JSON.stringify(json)}`).toBe(200)
  return json
}

/** Signs in with a nonce of one service at another. */
async function signIn(nonceOf: ServiceProcess, at: ServiceProcess, wallet: TestWallet) {
  return await call(at, '/wallet/verify', proofOf(wallet, await call(nonceOf, '/wallet/nonce', {})))
}

/** Takes an order to its approval, each step at another service than the one before. */
async function approve(first: ServiceProcess, second: ServiceProcess, wallet: TestWallet, details: object) {
  const order = await call(first, '/cross-device/start', details)
  const { orderId, claimToken, desktopToken } = order
  const { challengeToken } = await call(second, '/cross-device/claim', { orderId, claimToken })
  const challenge = `/cross-device/challenge?orderId=${orderId}`
  const { message } = await call(first, challenge, undefined, bearer(challengeToken))
  const { publicKeyHex, signatureHex } = proofOf(wallet, { nonceId: '', message })
  const approval = { orderId, challengeToken, proof: { publicKeyHex, signatureHex }, rememberComputer: true }
  const { returnCode } = await call(second, '/cross-device/approve', approval)
  return { orderId, desktopToken, challengeToken, returnCode }
}

const stores: [string, () => Promise<string>][] = [
  ['a SQLite file', async () => `sqlite:${join(folder, 'countersign.db')}`],
  ...(redisUrl === undefined ? [] : [['Redis', redisUrl] as [string, () => Promise<string>]]),
]

describe.skipIf(!hasFormerRelease).each(stores)('two releases on %s', (_, open) => {
  test('serve what the other one began, in both directions, and the former one what is left after a downgrade', async () => {
    const { former, today } = await startBoth(await open())
    for (const [first, second] of [
      [former, today],
      [today, former],
    ] as const) {
      const wallet = makeWallet()
      const { token, session } = await signIn(first, second, wallet)
      const byOther = await signIn(second, first, wallet)
      expect(byOther.session.userId).toBe(session.userId)
      for (const service of [first, second]) {
        const { sessions } = await call(service, '/sessions', undefined, bearer(token))
        expect(sessions).toHaveLength(2)
      }
      await call(first, '/sign-out', {}, bearer(byOther.token))
      expect(await rest(second.url, '/session', undefined, bearer(byOther.token))).toMatchObject({ status: 401 })

      const login = await approve(first, second, wallet, { kind: 'login' })
      const { orderId, desktopToken, returnCode } = login
      const finalizing = { orderId, desktopToken, returnCode }
      const finalized = await call(first, '/cross-device/finalize', finalizing)
      expect(finalized.session.userId).toBe(session.userId)
      const retried = await call(second, '/cross-device/finalize', finalizing)
      expect(retried.token).toBe(finalized.token)
      expect(await call(second, '/session', undefined, bearer(finalized.token))).toMatchObject({ session: { orderId } })
      const takenBack = { orderId, challengeToken: login.challengeToken }
      expect(await call(second, '/cross-device/reject', takenBack)).toMatchObject({ sessionEnded: true })
      expect(await rest(first.url, '/session', undefined, bearer(finalized.token))).toMatchObject({ status: 401 })

      const sign = await approve(first, second, wallet, { kind: 'sign', payload: '{"amount":5}' })
      const signed = await call(second, '/cross-device/finalize', {
        orderId: sign.orderId,
        desktopToken: sign.desktopToken,
        returnCode: sign.returnCode,
      })
      expect(signed.proofArtifact.payload).toBe('{"amount":5}')

      const computer = await makeComputer()
      const known = await approve(second, first, wallet, { kind: 'login', computerKey: computer.key })
      const holder = { orderId: known.orderId, desktopToken: known.desktopToken }
      const proven = { ...holder, returnCode: known.returnCode, computerProof: await computer.prove(holder) }
      await call(first, '/cross-device/finalize', proven)
      const again = await approve(first, second, wallet, { kind: 'login', computerKey: computer.key })
      expect(again.returnCode ?? '').toBe('')
    }
    // A downgrade.
    const { token } = await signIn(today, today, makeWallet())
    expect(await today.stop()).toBe(0)
    await call(former, '/session', undefined, bearer(token))
    for (const { log } of [former, today]) expect(log()).not.toContain('"level":"error"')
  })

  test('refuse a wallet that an operator blocked', async () => {
    const store = await open()
    const { former, today, keyPrefix } = await startBoth(store)
    const wallet = makeWallet()
    const { token } = await signIn(former, former, wallet)
    onTestFinished(() => void vi.unstubAllEnvs())
    vi.stubEnv('COUNTERSIGN_KEY_PREFIX', keyPrefix)
    const streams = { stdin: Readable.from([]), stdout: new PassThrough(), stderr: new PassThrough() }
    const blocking = ['admin', 'block', `nimiq:${wallet.address}`, '--store', store]
    expect(await runCommand(blocking, streams), String(streams.stderr.read())).toBe(0)
    for (const service of [former, today]) {
      expect(await rest(service.url, '/session', undefined, bearer(token))).toMatchObject({ status: 401 })
      const proof = proofOf(wallet, await call(service, '/wallet/nonce', {}))
      expect(await rest(service.url, '/wallet/verify', proof, origin)).toMatchObject({
        status: 403,
        json: { code: 'LOGIN_REFUSED' },
      })
      await signIn(service, service, makeWallet())
    }
  })

  test('agree on which wallets are whose', async () => {
    const { former, today } = await startBoth(await open())
    for (const [first, second] of [
      [former, today],
      [today, former],
    ] as const) {
      const [wallet, added] = [makeWallet(), makeWallet()]
      const { token, session } = await signIn(first, second, wallet)
      const challenge = await call(first, '/wallet/nonce', { purpose: 'link' }, bearer(token))
      const { nonceId, ...proof } = proofOf(added, challenge)
      await call(second, '/wallet/link', { nonceId, proof }, bearer(token))
      const byAdded = await signIn(second, first, added)
      expect(byAdded.session.userId).toBe(session.userId)
      await call(first, '/wallet/unlink', { adapterId: 'nimiq', address: added.address }, bearer(token))
      expect(await rest(second.url, '/session', undefined, bearer(byAdded.token))).toMatchObject({ status: 401 })
      expect((await signIn(first, second, added)).session.userId).not.toBe(session.userId)
    }
  })
})
