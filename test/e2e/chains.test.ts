import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { stellar } from '../../examples/custom-wallet/stellar.ts'
import { tron } from '../../examples/custom-wallet/tron.ts'
import { adminCommand } from '../../src/commands/admin/admin.ts'
import { type ChainWallet, makeStellarWallet, makeTronWallet } from '../support/chains.ts'
import { runHere } from '../support/command.ts'
import { makeComputer } from '../support/computer.ts'
import { bearer, okay, type RestAnswer, refusal, rest } from '../support/rest.ts'
import { startService } from '../support/service.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'

// Wallets of an application's own adapters, whose addresses are in upper case (Stellar) or in both (TRON).

async function admin(store: string, ...args: string[]): Promise<{ code: number; printed: string }> {
  const { code, stdout, stderr } = await runHere(adminCommand, [...args, '--store', store])
  return { code, printed: stdout + stderr }
}

async function proofOf({ adapterId, publicKeyHex, address, sign }: ChainWallet, message: string) {
  return { adapterId, publicKeyHex, address, signatureHex: await sign(message) }
}

async function trySignIn(url: string, wallet: ChainWallet): Promise<RestAnswer> {
  const { nonceId, message } = okay(await rest(url, '/wallet/nonce', {}))
  return await rest(url, '/wallet/verify', { nonceId, ...(await proofOf(wallet, message)) })
}

/** An order up to its challenge. */
async function startOrder(url: string, details: object) {
  const started = okay(await rest(url, '/cross-device/start', details))
  const { orderId, claimToken } = started
  const { challengeToken } = okay(await rest(url, '/cross-device/claim', { orderId, claimToken }))
  const path = `/cross-device/challenge?orderId=${orderId}`
  const { message } = okay(await rest(url, path, undefined, bearer(challengeToken)))
  return { ...started, challengeToken, message }
}

const adapters = [stellar, tron]

describe.each([
  ['stellar', makeStellarWallet],
  ['tron', makeTronWallet],
])('a wallet of %s', (id, makeWallet) => {
  test('is blocked by its address and found again, in its own case only', async () => {
    const store = `sqlite:${join(temporaryFolder(), 'a.db')}`
    const { url } = await startService({ store, adapters })
    const wallet = makeWallet()
    const { token, session } = okay(await trySignIn(url, wallet))
    const name = `${id}:${wallet.address}`
    expect(session).not.toHaveProperty('subject')
    expect((await admin(store, 'find', name)).printed).toContain(session.userId)
    expect((await admin(store, 'find', name.toLowerCase())).code).not.toBe(0)
    expect((await admin(store, 'block', name)).printed).toContain('blocked; ended 1 session')
    expect((await rest(url, '/session', undefined, bearer(token))).status).toBe(401)
    expect(refusal(await trySignIn(url, wallet))).toEqual([403, 'LOGIN_REFUSED'])
    okay(await trySignIn(url, makeWallet()))
    expect((await admin(store, 'find', name)).printed).toContain('blocked since ')
    expect((await admin(store, 'unblock', name)).printed).toContain('unblocked')
    expect(okay(await trySignIn(url, wallet)).session.userId).toBe(session.userId)
  })

  test('is a person of the people file by its address, and no one by the address in another case', async () => {
    const people = join(temporaryFolder(), 'people.json')
    const [listed, other] = [makeWallet(), makeWallet()]
    await writeFile(people, JSON.stringify({ [`${id}:${listed.address}`]: { name: 'Ada' } }))
    const { url } = await startService({ adapters, people, admit: 'people' })
    okay(await trySignIn(url, listed))
    expect(refusal(await trySignIn(url, other))).toEqual([403, 'LOGIN_REFUSED'])
    await writeFile(people, JSON.stringify({ [`${id}:${listed.address.toLowerCase()}`]: { name: 'Ada' } }))
    await expect(startService({ adapters, people, admit: 'people' })).rejects.toThrow(`no address of ${id}`)
  })

  test('has known computers, which its user sees and forgets', async () => {
    const { url } = await startService({ adapters, confirmationCode: 'return' })
    const [wallet, computer] = [makeWallet(), await makeComputer()]
    const approved = async (rememberComputer: boolean) => {
      const order = await startOrder(url, { kind: 'login', computerKey: computer.key })
      const { orderId, challengeToken, desktopToken, message } = order
      const approval = { orderId, challengeToken, rememberComputer, proof: await proofOf(wallet, message) }
      const { returnCode } = okay(await rest(url, '/cross-device/approve', approval))
      const computerProof = await computer.prove(order)
      return { returnCode, finalize: { orderId, desktopToken, returnCode, computerProof } }
    }
    const first = await approved(true)
    expect(first.returnCode).toMatch(/^\d{6}$/)
    okay(await rest(url, '/cross-device/finalize', first.finalize))
    const second = await approved(false)
    expect(second.returnCode).toBeUndefined()
    const { token } = okay(await rest(url, '/cross-device/finalize', second.finalize))
    const [known, ...others] = okay(await rest(url, '/computers', undefined, bearer(token))).computers
    expect(others).toEqual([])
    okay(await rest(url, '/computers/forget', { id: known.id }, bearer(token)))
    expect((await approved(false)).returnCode).toMatch(/^\d{6}$/)
  })

  test('approves an order again with each spelling of its signature, and with no other', async () => {
    const { url } = await startService({ adapters })
    const [wallet, other] = [makeWallet(), makeWallet()]
    const { orderId, challengeToken, message } = await startOrder(url, { kind: 'sign', displayTitle: 'Pay 5' })
    const proof = await proofOf(wallet, message)
    const approve = async (changes: object): Promise<RestAnswer> =>
      await rest(url, '/cross-device/approve', { orderId, challengeToken, proof: { ...proof, ...changes } })
    okay(await approve({}))
    const { signatureHex } = proof
    const zeroBased = signatureHex.replace(/1b$/, '00').replace(/1c$/, '01')
    const spellings = [signatureHex, ...(id === 'tron' ? [zeroBased] : [])]
    for (const spelling of spellings.flatMap((hex) => [hex, hex.toUpperCase()])) {
      expect(okay(await approve({ signatureHex: spelling })).status).toBe('approved')
    }
    const wrong = [signatureHex.replace(/^./, (digit) => (digit === '0' ? '1' : '0'))]
    if (id === 'tron') wrong.push(signatureHex.replace(/..$/, (v) => (v === '1b' ? '1c' : '1b')))
    for (const changes of [...wrong.map((hex) => ({ signatureHex: hex })), await proofOf(other, message)]) {
      expect(refusal(await approve(changes))).toEqual([409, 'ORDER_ALREADY_APPROVED'])
    }
  })
})
