import { describe, expect, onTestFinished, test } from 'vitest'
import { hashToken } from '../../../src/base/token.ts'
import { storedOrders } from '../../../src/core/order/records.ts'
import type { CountersignError } from '../../../src/shared/errors.ts'
import type { StartOrderOptions } from '../../../src/shared/orders.ts'
import { keptLog } from '../../support/log-lines.ts'
import { rest } from '../../support/rest.ts'
import { startService } from '../../support/service.ts'
import { stores } from '../../support/stores.ts'
import { makeWallet } from '../../support/wallet.ts'
import { places } from './places.ts'
import {
  Computer,
  desktop,
  from,
  isolated,
  issuedBy,
  makeInstance,
  otherCode,
  outcomeOf,
  passTime,
  phone,
  reasonOf,
  Signer,
  suiteStore,
  untilApproved,
  untilCode,
  untilWaiting,
} from './support.ts'

const settings = { confirmationCode: 'return' } as const

describe.each(stores)('return codes on $name', async ({ open }) => {
  const store = await suiteStore(open)

  const start = () => makeInstance(store, { settings })

  test('take the place of the confirmation code', async () => {
    const instance = start()
    const order = await untilWaiting(instance)
    expect(order.confirmationCode).toBe('')
    expect(order.message).not.toContain('Code:')
    const challenge = await instance.orders.readChallenge(order, phone)
    expect(challenge).not.toHaveProperty('confirmationCode')
    expect(challenge).not.toHaveProperty('returnCode')
  })

  test('are told to the phone at approval, alike at its retry and when it reads the challenge', async () => {
    const instance = start()
    const order = await untilCode(instance)
    expect(order.returnCode).toMatch(/^\d{6}$/)
    const { returnCode } = order
    expect(await instance.orders.approve(order, phone)).toEqual({
      orderId: order.orderId,
      status: 'approved',
      returnCode,
      finishBy: expect.any(Number),
    })
    const elsewhere = makeInstance(store)
    expect(await elsewhere.orders.readChallenge(order, phone)).toMatchObject({ status: 'approved', returnCode })
    await instance.orders.finalize(order, desktop)
    expect(await instance.orders.approve(order, phone)).toEqual({ orderId: order.orderId, status: 'finalized' })
  })

  test('that the phone was shown are right, before and after the secret is rotated', async () => {
    const rotated = makeInstance(store, { settings, secrets: ['second secret', 'first secret'] })
    for (const which of ['before', 'after'] as const) {
      const order = await untilCode(makeInstance(store, { settings, secrets: ['first secret'] }))
      const { returnCode: after } = await rotated.orders.readChallenge(order, phone)
      const returnCode = { before: order.returnCode, after }[which]
      expect((await rotated.orders.finalize({ ...order, returnCode }, desktop)).status).toBe('finalized')
    }
  })

  test('are not known to the watch, which says that one is needed', async () => {
    const instance = start()
    const order = await untilCode(instance)
    const events = instance.orders.watch({ ...order, afterSequence: 0 }, desktop, new AbortController().signal)
    for (const status of ['created', 'claimed', 'waiting_user', 'approved']) {
      const { value } = await events.next()
      expect(value).toMatchObject({ status, returnCodeRequired: status === 'approved' })
      expect(JSON.stringify(value)).not.toMatch(isolated(order.returnCode))
    }
    await instance.orders.finalize(order, desktop)
    expect((await events.next()).value).toMatchObject({ status: 'finalized', returnCodeRequired: false })
  })

  test('come with the time and the tries that are left, for desktop and phone', async () => {
    const instance = start()
    passTime(0)
    const order = await untilCode(instance)
    const finishBy = Date.now() + 180_000
    const newestEvent = async () =>
      (await instance.orders.watch(order, desktop, new AbortController().signal).next()).value
    expect(await instance.orders.approve(order, phone)).toMatchObject({ finishBy })
    for (const triesLeft of [3, 2, 1]) {
      expect(await newestEvent()).toMatchObject({ status: 'approved', finishBy, triesLeft })
      expect(await instance.orders.readChallenge(order, phone)).toMatchObject({ finishBy, triesLeft })
      await reasonOf(instance.orders.finalize({ ...order, returnCode: otherCode(order.returnCode) }, desktop))
    }
    const ended = await newestEvent()
    expect(ended).toMatchObject({ status: 'rejected' })
    for (const name of ['finishBy', 'triesLeft']) expect(ended).not.toHaveProperty(name)
  })

  test('are taken in the digits of any script, and with what copying adds', async () => {
    const instance = start()
    const inScript = (code: string, zero: string) =>
      [...code].map((digit) => String.fromCodePoint((zero.codePointAt(0) as number) + Number(digit))).join('')
    for (const spell of [
      (code: string) => inScript(code, '０'),
      (code: string) => inScript(code, '٠'),
      (code: string) => inScript(code, '۰'),
      (code: string) => inScript(code, '०'),
      (code: string) => `${code.slice(0, 3)}\u00a0${code.slice(3)}.`,
      (code: string) => `\u2068${code.slice(0, 3)}–${code.slice(3)}\u2069\n`,
    ]) {
      const order = await untilCode(instance)
      const returnCode = spell(order.returnCode)
      expect({ returnCode, ...(await outcomeOf(instance.orders.finalize({ ...order, returnCode }, desktop))) }).toEqual(
        {
          returnCode,
        },
      )
    }
  })

  test('a text that cannot be one is refused as such, and is no try', async () => {
    const instance = start()
    const order = await untilCode(instance)
    const cut = order.returnCode.slice(0, 5)
    for (const returnCode of ['', '-', cut, `${order.returnCode}0`, `Code ${order.returnCode}`, `${cut}O`, '⅕⅕⅕⅕⅕⅕']) {
      const { reason } = await outcomeOf(instance.orders.finalize({ ...order, returnCode }, desktop))
      expect({ returnCode, reason }).toEqual({ returnCode, reason: 'INVALID_REQUEST' })
    }
    expect(await instance.orders.readChallenge(order, phone)).toMatchObject({ triesLeft: 3 })
    await instance.orders.finalize(order, desktop)
  })

  test('are each order’s own', async () => {
    const instance = start()
    const codes = new Set<string>()
    for (let n = 0; n < 20; n++) codes.add((await untilCode(instance)).returnCode)
    expect(codes.size).toBeGreaterThan(15)
  })

  test.each(['login', 'sign'] as const)('finalize a %s order, and a call without one is no try', async (kind) => {
    const instance = start()
    const { returnCode, ...order } = await untilCode(instance, { kind })
    for (let n = 0; n < 5; n++) {
      expect(await reasonOf(instance.orders.finalize(order, desktop))).toBe('RETURN_CODE_REQUIRED')
    }
    expect(await instance.orders.finalize({ ...order, returnCode }, desktop)).toMatchObject({ kind })
  })

  test('count down, and the third wrong one rejects the order for desktop and phone', async () => {
    const instance = start()
    const order = await untilCode(instance)
    const other = otherCode(order.returnCode)
    for (const [n, returnCode] of [other, otherCode(other), other].entries()) {
      const failed = instance.orders.finalize({ ...order, returnCode }, desktop)
      const error = await failed.catch((error: CountersignError) => error)
      expect(error).toMatchObject({ reason: 'RETURN_CODE_WRONG', metadata: { tries_left: String(2 - n) } })
    }
    expect(await reasonOf(instance.orders.finalize(order, desktop))).toBe('ORDER_REJECTED')
    expect(await reasonOf(instance.orders.readChallenge(order, phone))).toBe('ORDER_REJECTED')
    expect(await instance.orders.reject(order, phone)).toEqual({ orderId: order.orderId, status: 'rejected' })
    const stored = await storedOrders(store).load(order.orderId)
    expect(stored?.order).not.toHaveProperty('login')
  })

  test('are needed for each retry, and the third wrong one ends the retries', async () => {
    const instance = start()
    const { returnCode, ...order } = await untilCode(instance)
    const wrong = { ...order, returnCode: otherCode(returnCode) }
    expect(await reasonOf(instance.orders.finalize(wrong, desktop))).toBe('RETURN_CODE_WRONG')
    const first = issuedBy(await instance.orders.finalize({ ...order, returnCode }, desktop))
    expect(await reasonOf(instance.orders.finalize(order, desktop))).toBe('RETURN_CODE_REQUIRED')
    expect(await reasonOf(instance.orders.finalize(wrong, desktop))).toBe('RETURN_CODE_WRONG')
    expect(issuedBy(await instance.orders.finalize({ ...order, returnCode }, desktop)).token).toBe(first.token)
    expect(await reasonOf(instance.orders.finalize(wrong, desktop))).toBe('RETURN_CODE_WRONG')
    expect(await reasonOf(instance.orders.finalize({ ...order, returnCode }, desktop))).toBe('ORDER_FINALIZED')
    // What was signed in by then stays.
    expect(await instance.host.introspect(first.token)).toEqual(first.session)
  })

  test('leave 180 seconds to enter them, and an order without one 60', async () => {
    const entering = [await untilWaiting(start()), await untilWaiting(start())] as const
    const comparing = [await untilWaiting(makeInstance(store)), await untilWaiting(makeInstance(store))] as const
    passTime(119_000)
    const { orders } = start()
    const returnCodes = []
    for (const order of entering) returnCodes.push((await orders.approve(order, phone)).returnCode)
    for (const order of comparing) await orders.approve(order, phone)
    passTime(59_000)
    expect((await orders.finalize(comparing[0], desktop)).status).toBe('finalized')
    passTime(2000)
    expect(await reasonOf(orders.finalize(comparing[1], desktop))).toBe('ORDER_EXPIRED')
    passTime(118_000)
    expect((await orders.finalize({ ...entering[0], returnCode: returnCodes[0] }, desktop)).status).toBe('finalized')
    passTime(1000)
    expect(await reasonOf(orders.finalize({ ...entering[1], returnCode: returnCodes[1] }, desktop))).toBe(
      'ORDER_EXPIRED',
    )
    expect(await reasonOf(orders.readChallenge(entering[1], phone))).toBe('ORDER_EXPIRED')
    expect(await reasonOf(orders.readChallenge(entering[0], phone))).toBe('ORDER_FINALIZED')
  })

  test('that are right leave the order approved if the application refuses the login', async () => {
    let allowed = false
    const host = { resolveLogin: () => (allowed ? { id: 'somebody' } : null) }
    const instance = makeInstance(store, { settings, host })
    const order = await untilCode(instance)
    for (let n = 0; n < 4; n++) expect(await reasonOf(instance.orders.finalize(order, desktop))).toBe('LOGIN_REFUSED')
    const wrong = { ...order, returnCode: otherCode(order.returnCode) }
    expect(await reasonOf(instance.orders.finalize(wrong, desktop))).toBe('RETURN_CODE_WRONG')
    allowed = true
    expect((await instance.orders.finalize(order, desktop)).status).toBe('finalized')
  })

  test('are not asked for where codes are compared, and none that is sent is looked at', async () => {
    const instance = makeInstance(store)
    const order = await untilApproved(instance)
    expect(order).not.toHaveProperty('returnCode')
    for (let n = 0; n < 4; n++) {
      const finalized = await instance.orders.finalize({ ...order, returnCode: '123456' }, desktop)
      expect(finalized.status).toBe('finalized')
    }
  })

  test('stay with the order when the settings change', async () => {
    const order = await untilWaiting(start())
    const comparing = makeInstance(store)
    const { returnCode } = await comparing.orders.approve(order, phone)
    expect(await reasonOf(comparing.orders.finalize(order, desktop))).toBe('RETURN_CODE_REQUIRED')
    expect((await comparing.orders.finalize({ ...order, returnCode }, desktop)).status).toBe('finalized')
  })

  describe('and known computers', () => {
    test('a computer that was remembered needs none for its next orders of either kind, with its key', async () => {
      const instance = start()
      const computer = new Computer()
      const signer = new Signer()
      const input = { kind: 'login', computerKey: computer.computerKey } as const
      const first = await untilCode(instance, input, signer, { rememberComputer: true })
      const { session } = issuedBy(
        await instance.orders.finalize({ ...first, computerProof: computer.prove(first) }, desktop),
      )
      for (const kind of ['login', 'sign'] as const) {
        const next = await untilApproved(instance, { ...input, kind }, signer)
        expect(next).not.toHaveProperty('returnCode')
        const events = instance.orders.watch(next, desktop, new AbortController().signal)
        expect((await events.next()).value).toMatchObject({ status: 'approved', returnCodeRequired: false })
        expect(await reasonOf(instance.orders.finalize(next, desktop))).toBe('COMPUTER_PROOF_INVALID')
        const computerProof = computer.prove(next)
        const finalized = await instance.orders.finalize({ ...next, computerProof }, desktop)
        if (kind === 'login') expect(issuedBy(finalized).session.computerId).toBe(session.computerId)
      }
      expect(session.computerId).toMatch(/^[\w-]{22}$/)
      const elsewhere = await untilApproved(instance, input, new Signer())
      expect(elsewhere).toHaveProperty('returnCode')
      const otherKey = { ...input, computerKey: new Computer().computerKey }
      expect(await untilApproved(instance, otherKey, signer)).toHaveProperty('returnCode')
    })

    test('is not remembered unless the phone’s user says so, for a login, with a return code', async () => {
      const computer = new Computer()
      const signer = new Signer()
      const { computerKey } = computer
      const compare = makeInstance(store)
      const off = makeInstance(store, { settings: { ...settings, knownComputers: false } })
      const tries = [
        [start(), { kind: 'login', computerKey }, {}],
        [start(), { kind: 'sign', computerKey }, { rememberComputer: true }],
        [compare, { kind: 'login', computerKey }, { rememberComputer: true }],
        [off, { kind: 'login', computerKey }, { rememberComputer: true }],
      ] as const
      for (const [instance, input, approval] of tries) {
        const order = await untilApproved(instance, input, signer, approval)
        await instance.orders.finalize({ ...order, computerProof: computer.prove(order) }, desktop)
        expect(await untilApproved(start(), { kind: 'login', computerKey }, signer)).toHaveProperty('returnCode')
      }
    })

    test('can be remembered only if the order has a key, asks for a code and is a login', async () => {
      const { computerKey } = new Computer()
      const canRemember = async (instance: ReturnType<typeof start>, input: StartOrderOptions): Promise<boolean> => {
        const order = await untilWaiting(instance, input)
        return (await instance.orders.readChallenge(order, phone)).canRememberComputer
      }
      expect(await canRemember(start(), { kind: 'login', computerKey })).toBe(true)
      expect(await canRemember(start(), { kind: 'login' })).toBe(false)
      expect(await canRemember(start(), { kind: 'sign', computerKey })).toBe(false)
      expect(await canRemember(makeInstance(store), { kind: 'login', computerKey })).toBe(false)
      const off = makeInstance(store, { settings: { ...settings, knownComputers: false } })
      expect(await canRemember(off, { kind: 'login', computerKey })).toBe(false)
    })

    test('the proof is checked like a token: before anything is told of the order, at each finalize', async () => {
      const instance = start()
      const computer = new Computer()
      const waiting = await untilWaiting(instance, { kind: 'login', computerKey: computer.computerKey })
      const stranger = new Computer().prove(waiting)
      const ofAnother = computer.prove(await untilWaiting(instance))
      const check = async (order: typeof waiting, reason: string | undefined) => {
        const { returnCode } = order as { returnCode?: string }
        for (const computerProof of [undefined, stranger, ofAnother, '', 'x']) {
          for (const code of [undefined, '000000', returnCode]) {
            const finalization = { ...order, computerProof, returnCode: code }
            // A page of another origin does not learn which one the order has.
            for (const request of [desktop, from('https://evil.example')]) {
              const told = await outcomeOf(instance.orders.finalize(finalization, request))
              expect(told.reason).toBe('COMPUTER_PROOF_INVALID')
            }
          }
        }
        const finalization = { ...order, computerProof: computer.prove(order) }
        expect(await reasonOf(instance.orders.finalize(finalization, desktop))).toBe(reason)
      }
      await check(waiting, 'ORDER_NOT_APPROVED')
      const { returnCode } = await instance.orders.approve(waiting, phone)
      const approved = { ...waiting, returnCode: String(returnCode) }
      await check(approved, undefined)
      await check(approved, undefined)
      await instance.orders.reject(approved, phone)
      await check(approved, 'ORDER_REJECTED')
      expect(await reasonOf(instance.orders.cancel({ ...approved, desktopToken: 'wrong' }, desktop))).toBe(
        'ORDER_TOKEN_INVALID',
      )
    })
  })
})

describe.each(places)('only the phone gets the return code: with $name', ({ open, dump }) => {
  test('it is not in the store, nor in any answer to the desktop, nor in the log', async () => {
    const { logger, lines } = keptLog()
    const secret = 'a secret for tests and for nothing else'
    const options = { store: await open(), secret, confirmationCode: 'return', logger } as const
    const { url } = await startService(options)
    const toDesktop: string[] = []
    const heard = async (answer: Awaited<ReturnType<typeof rest>>) => {
      toDesktop.push(JSON.stringify([...answer.headers]), JSON.stringify(answer.json))
      return answer.json
    }
    const started = await heard(await rest(url, '/cross-device/start', { kind: 'login' }))
    const { orderId, claimToken, desktopToken } = started
    const leave = new AbortController()
    onTestFinished(() => leave.abort())
    const events = await fetch(`${url}/api/auth/cross-device/events?orderId=${orderId}`, {
      headers: { authorization: `Bearer ${desktopToken}` },
      signal: leave.signal,
    })
    const { challengeToken } = (await rest(url, '/cross-device/claim', { orderId, claimToken })).json
    const readChallenge = () =>
      rest(url, `/cross-device/challenge?orderId=${orderId}`, undefined, { authorization: `Bearer ${challengeToken}` })
    const wallet = makeWallet()
    const signatureHex = wallet.sign((await readChallenge()).json.message)
    const proof = { publicKeyHex: wallet.publicKeyHex, signatureHex }
    const approval = { orderId, challengeToken, proof }
    const { returnCode } = (await rest(url, '/cross-device/approve', approval)).json
    expect(returnCode).toMatch(/^\d{6}$/)
    expect((await readChallenge()).json.returnCode).toBe(returnCode)

    const hashes = [hashToken(returnCode), Buffer.from(hashToken(returnCode), 'base64url').toString('hex')]
    const expectNotStored = async () => {
      const dumped = await dump()
      expect(dumped).toContain(orderId)
      expect(dumped).not.toMatch(isolated(returnCode))
      for (const hash of hashes) expect(dumped).not.toContain(hash)
    }
    await expectNotStored()
    const finalize = async (code?: string) =>
      heard(await rest(url, '/cross-device/finalize', { orderId, desktopToken, returnCode: code }))
    expect((await finalize()).code).toBe('RETURN_CODE_REQUIRED')
    expect((await finalize(otherCode(returnCode))).code).toBe('RETURN_CODE_WRONG')
    await expectNotStored()
    expect((await finalize(returnCode)).token).toMatch(/^css_/)
    expect((await finalize()).code).toBe('RETURN_CODE_REQUIRED')
    await expectNotStored()
    toDesktop.push(await events.text())
    expect(toDesktop.at(-1)).toContain('"returnCodeRequired":true')
    for (const text of toDesktop) expect(text).not.toMatch(isolated(returnCode))
    const log = JSON.stringify(lines)
    expect(log).toContain('RETURN_CODE_WRONG')
    expect(log).not.toMatch(isolated(returnCode))
  })
})
