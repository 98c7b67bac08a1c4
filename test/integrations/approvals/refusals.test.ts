import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterEach, describe, expect, test, vi } from 'vitest'
import type { Approvals } from '../../../src/integrations/approvals/index.ts'
import { freePort } from '../../support/redis-server.ts'
import { temporaryFolder } from '../../support/temporary-folder.ts'
import { makeWallet } from '../../support/wallet.ts'
import { application, reasonOf, startApprovals, TestUser, work } from './support.ts'

afterEach(() => void vi.useRealTimers())

const action = { tool: 'transfer', to: 'bakery', amount: 25 }

/** What a backend asks a user. */
const asked = (user: TestUser) => ({ userId: user.id, wallets: user.wallets, title: 'Transfer', action })

/** Lets time pass, for the service too, which is in this process. */
function later(seconds: number): void {
  vi.useFakeTimers({ toFake: ['Date'], now: Date.now() + seconds * 1000 })
}

/** A `fetch` between backend and service that changes what passes: requests by their path, and answers. */
function between(change: {
  readonly request?: (path: string, body: string) => string
  readonly answer?: (path: string, text: string) => string
}) {
  return async (address: string, init: RequestInit): Promise<Response> => {
    const path = new URL(address).pathname.replace(/.*\//, '')
    const { body } = init
    const sent = typeof body === 'string' ? { ...init, body: change.request?.(path, body) ?? body } : init
    const response = await fetch(address, sent)
    const text = await response.text()
    return new Response(change.answer?.(path, text) ?? text, { status: response.status })
  }
}

test('an approved action runs, as it was signed, and its text names what was asked', async () => {
  const { user, backend, tool } = await startApprovals()
  const approval = await backend().ask(asked(user))
  expect(approval.url).toMatch(new RegExp(`^http://localhost:\\d+/api/auth/inbox\\?order=${approval.id}$`))
  expect(await user.inbox()).toEqual([approval.id])
  const run = tool.run(approval.decision())
  await user.approve(approval.id)
  expect(await run).toBe('ran')
  expect(tool.ran).toStrictEqual([action])
})

test('what the user declines does not run', async () => {
  const { user, backend, tool } = await startApprovals()
  const approval = await backend().ask(asked(user))
  const run = tool.run(approval.decision())
  await user.reject(approval.id)
  expect([await run, tool.ran]).toEqual(['declined', []])
})

describe('nothing runs', () => {
  test.each([
    ['if the payload is changed by a byte on its way to the user', 'request'],
    ['if the payload of the proof is changed by a byte on its way back', 'answer'],
  ])('%s', async (_, way) => {
    const { user, backend, tool } = await startApprovals()
    const change = (_path: string, text: string): string => text.replace('amount\\":25', 'amount\\":26')
    const approval = await backend({ fetch: between({ [way]: change }) }).ask(asked(user))
    await user.approve(approval.id)
    expect([await tool.run(approval.decision()), tool.ran]).toEqual(['PROOF_INVALID', []])
  })

  test('if the approval of one action is presented for another, even for an equal one', async () => {
    const { user, backend, tool } = await startApprovals()
    let first = ''
    const answer = (path: string, text: string): string => {
      if (path !== 'finalize') return text
      first ||= text
      return first
    }
    const approvals = backend({ fetch: between({ answer }) })
    const [one, other] = [await approvals.ask(asked(user)), await approvals.ask(asked(user))]
    for (const { id } of [one, other]) await user.approve(id)
    expect(await tool.run(one.decision())).toBe('ran')
    expect(await tool.run(other.decision())).toBe('PROOF_INVALID')
    expect(tool.ran).toHaveLength(1)
  })

  test('a second time in one process: by the approval, nor by its handle', async () => {
    const { user, backend, tool } = await startApprovals()
    const approvals = backend()
    const approval = await approvals.ask(asked(user))
    await user.approve(approval.id)
    const again = await approvals.resume(approval.handle)
    const runs = [approval.decision(), approval.decision(), again.decision()].map((decided) => tool.run(decided))
    expect((await Promise.all(runs)).sort()).toEqual(['ALREADY_USED', 'ALREADY_USED', 'ran'])
    expect(tool.ran).toHaveLength(1)
  })

  test('for an agent that finalizes first, and has the artifact, but can hand it to no one', async () => {
    const { url, user, backend, tool } = await startApprovals()
    let desktopToken = ''
    const answer = (path: string, text: string): string => {
      if (path === 'start') desktopToken = JSON.parse(text).desktopToken
      return text
    }
    const approval = await backend({ fetch: between({ answer }) }).ask(asked(user))
    await user.approve(approval.id)
    const body = JSON.stringify({ orderId: approval.id, desktopToken, finalizeKey: 'a'.repeat(43) })
    const stolen = await fetch(`${url}/api/auth/cross-device/finalize`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body,
    })
    expect(await stolen.json()).toHaveProperty('proofArtifact')
    expect([await tool.run(approval.decision()), tool.ran]).toEqual(['ALREADY_USED', []])
  })

  test('with a forged key, which the service takes for no approval', async () => {
    const { user, backend, tool } = await startApprovals()
    const approval = await backend().ask({ ...asked(user), ttlSeconds: 30 })
    const forger = makeWallet()
    const forged = { ...user.wallet, sign: (text: string) => forger.sign(text) }
    expect(await reasonOf(user.approve(approval.id, forged))).toBe('SIGNATURE_INVALID')
    expect(await reasonOf(user.approve(approval.id, user.wallet, () => '00'.repeat(64)))).toBe('SIGNATURE_INVALID')
    later(31)
    expect([await tool.run(approval.decision()), tool.ran]).toEqual(['expired', []])
  })

  test('with a proof that was made at another service, of the same user, name and origin', async () => {
    const [{ user, backend, tool }, elsewhere] = [await startApprovals(), await startApprovals()]
    const there = await TestUser.signIn(elsewhere.url, user.wallet)
    const foreign = await elsewhere.backend().ask(asked(there))
    const { message } = await there.open(foreign.id)
    // At the service of the order,
    const approval = await backend().ask(asked(user))
    const signed = user.approve(approval.id, user.wallet, () => user.wallet.sign(message))
    expect(await reasonOf(signed)).toBe('SIGNATURE_INVALID')
    // and in what such a service answers.
    await there.approve(foreign.id)
    const decision = await foreign.decision()
    const proofArtifact = decision.approved ? decision.artifact : undefined
    const answer = (path: string, text: string): string =>
      path === 'finalize' ? JSON.stringify({ proofArtifact }) : text
    const deceived = await backend({ fetch: between({ answer }) }).ask(asked(user))
    await user.approve(deceived.id)
    expect([await tool.run(deceived.decision()), tool.ran]).toEqual(['PROOF_INVALID', []])
  })

  test('once it is expired: neither unapproved nor approved and left', async () => {
    const { user, backend, tool } = await startApprovals()
    const [open, left] = [await backend().ask(asked(user)), await backend().ask(asked(user))]
    await user.approve(left.id)
    later(3_601)
    expect(await tool.run(open.decision())).toBe('expired')
    expect(await reasonOf(user.approve(open.id))).toMatch(/ORDER_(EXPIRED|NOT_FOUND)/)
    later(3_600)
    expect(await tool.run(left.decision())).toBe('expired')
    expect(tool.ran).toEqual([])
  })

  test('by another user, who does not find it, nor by a wallet of another user with a session of the right one', async () => {
    const { url, user, backend, tool } = await startApprovals()
    const other = await TestUser.signIn(url)
    const wallets = [...user.wallets, ...other.wallets]
    // Even if the backend's list had that wallet.
    const approval = await backend().ask({ ...asked(user), wallets, ttlSeconds: 30 })
    expect(await other.inbox()).toEqual([])
    expect(await reasonOf(other.approve(approval.id))).toBe('ORDER_NOT_FOUND')
    expect(await reasonOf(user.approve(approval.id, other.wallet))).toBe('WRONG_WALLET')
    later(31)
    expect([await tool.run(approval.decision()), tool.ran]).toEqual(['expired', []])
  })

  test.each([
    ['after the start', 0],
    ['an hour before it', 3_600],
    ['a minute less than a day before it', 86_340],
  ])('by a wallet that was linked %s, even if the backend’s list has it', async (_, seconds) => {
    const { user, backend, tool } = await startApprovals({ sessionTtlSeconds: 604_800 })
    const added = makeWallet()
    const wallets = [...user.wallets, { adapterId: 'nimiq', address: added.address }]
    const ask = () => backend().ask({ ...asked(user), wallets, ttlSeconds: 30 })
    const before = seconds === 0 ? await ask() : undefined
    await user.link(added)
    later(seconds)
    const approval = before ?? (await ask())
    expect(await reasonOf(user.approve(approval.id, added))).toBe('WRONG_WALLET')
    later(31)
    expect([await tool.run(approval.decision()), tool.ran]).toEqual(['expired', []])
  })

  test('by a wallet of the user that was linked long ago, and that the backend’s list does not have', async () => {
    const { user, backend, tool } = await startApprovals({ sessionTtlSeconds: 604_800 })
    const added = makeWallet()
    await user.link(added)
    later(86_500)
    // With two in the list, the order names none, so that the service lets it through.
    const wallets = [...user.wallets, { adapterId: 'nimiq', address: makeWallet().address }]
    const approval = await backend().ask({ ...asked(user), wallets })
    await user.approve(approval.id, added)
    expect([await tool.run(approval.decision()), tool.ran]).toEqual(['PROOF_INVALID', []])
  })

  test('of an action with a getter, which is not even asked', async () => {
    const { user, backend } = await startApprovals()
    let looks = 0
    const shifting = {
      get amount() {
        looks += 1
        return looks
      },
    }
    expect(await reasonOf(backend().ask({ ...asked(user), action: shifting }))).toBe('ACTION_INVALID')
    expect([await user.inbox(), looks]).toEqual([[], 0])
  })

  test('but what was signed, if the caller’s object changes meanwhile', async () => {
    const { user, backend, tool } = await startApprovals()
    const mine = { ...action, notes: ['a'] }
    const asking = backend().ask({ ...asked(user), action: mine })
    mine.to = 'agent'
    mine.notes.push('b')
    const approval = await asking
    const run = tool.run(approval.decision())
    mine.amount = 1000
    await user.approve(approval.id)
    expect(await run).toBe('ran')
    expect(tool.ran).toStrictEqual([{ ...action, notes: ['a'] }])
  })
})

describe('handles', () => {
  test('of another start key are refused', async () => {
    const { user, backend } = await startApprovals()
    const { handle } = await backend().ask(asked(user))
    const other = backend({ startKey: 'another-start-key-of-32-letters..' })
    expect(await reasonOf(other.resume(handle))).toBe('HANDLE_INVALID')
  })

  test('that an agent with the start key makes for its own wallet open nothing with the backend’s wallets', async () => {
    const { url, user, backend, tool } = await startApprovals()
    const agent = await TestUser.signIn(url)
    const forged = await backend().ask({ ...asked(agent), action: { tool: 'transfer', to: 'agent', amount: 1000 } })
    await agent.approve(forged.id)
    const resumed = await backend().resume(forged.handle, { wallets: user.wallets })
    expect([await tool.run(resumed.decision()), tool.ran]).toEqual(['PROOF_INVALID', []])
  })

  test('go on after a restart of the backend and of the service, once', async () => {
    const { folder, options, user, backend, stop, start } = await restartable()
    const { handle, id } = await backend().ask(asked(user))
    await user.approve(id)
    await stop()
    await start()
    const file = join(folder, 'ran')
    expect(await work(options, handle, file)).toBe('ran')
    expect(await work(options, handle, file)).toBe('ALREADY_USED')
    expect(await readFile(file, 'utf8')).toBe(`${JSON.stringify(action)}\n`)
    await stop()
    await start()
    expect(await work(options, handle, file)).toBe('ALREADY_USED')
    expect(await readFile(file, 'utf8')).toBe(`${JSON.stringify(action)}\n`)
  })

  test('of two processes at once let one run', async () => {
    const { folder, options, user, backend } = await restartable()
    const { handle, id } = await backend().ask(asked(user))
    const file = join(folder, 'ran')
    const runs = [work(options, handle, file), work(options, handle, file)]
    await user.approve(id)
    expect((await Promise.all(runs)).sort()).toEqual(['ALREADY_USED', 'ran'])
    expect(await readFile(file, 'utf8')).toBe(`${JSON.stringify(action)}\n`)
  })

  test('after a crash between answer and action let nothing run, and a new approval does', async () => {
    const { folder, options, user, backend } = await restartable()
    const file = join(folder, 'ran')
    await writeFile(file, '')
    const approvals: Approvals = backend()
    const first = await approvals.ask(asked(user))
    await user.approve(first.id)
    expect(await work(options, first.handle, file, 'crash')).toBe('SIGKILL')
    expect(await work(options, first.handle, file)).toBe('ALREADY_USED')
    expect(await readFile(file, 'utf8')).toBe('')
    const second = await approvals.ask(asked(user))
    await user.approve(second.id)
    expect(await work(options, second.handle, file)).toBe('ran')
  })
})

/** A service with a store in a file, which can be stopped and started again. */
async function restartable() {
  const folder = temporaryFolder()
  const port = await freePort()
  const settings = { store: `sqlite:${join(folder, 'store.db')}`, port }
  const started = await startApprovals(settings)
  let running = started.service
  return {
    ...started,
    folder,
    options: { url: started.url, ...application },
    stop: () => running.close(500),
    start: async () => {
      running = (await startApprovals(settings)).service
    },
  }
}
