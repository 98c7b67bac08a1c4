import { describe, expect, test } from 'vitest'
import { hashToken, Keyring, newToken } from '../../../src/base/token.ts'
import { Sessions, sessionIdOf } from '../../../src/core/users/sessions.ts'
import type { Store } from '../../../src/store/store.ts'
import { endingAt, everyOrder } from './interleavings.ts'
import { openMemory, racedStores } from './support.ts'

// What the session of an order can go through while the order is taken back: every order of the steps of both at the
// store, and the end of the process before and after each step.

/** A user, and a session of an order that the user has or may get. */
interface Subject {
  readonly userId: string
  readonly secretPart: string
  readonly id: string
}

type Action = (sessions: Sessions, subject: Subject) => Promise<unknown>

const make: Action = (sessions, { userId, secretPart }) =>
  sessions.create({ userId, adapterId: 'nimiq', publicKeyHex: 'ab', address: 'NQ', ip: '', userAgent: '' }, secretPart)
const takeBack: Action = (sessions, { userId, id }) => sessions.takeBack(userId, id)
const end: Action = (sessions, { userId, id }) => sessions.end(userId, id)
const list: Action = (sessions, { userId }) => sessions.list(userId)
const use: Action = (sessions, { secretPart }) => sessions.use(tokenOf(secretPart))

const keyring = new Keyring(['a secret '.repeat(4)])

function tokenOf(secretPart: string): string {
  return `${secretPart}.${keyring.sign('session token', secretPart)}`
}

/** Sessions that each use extends, because they were made for a shorter life. */
function sessionsOn(store: Store, ttlSeconds = 3600): Sessions {
  return new Sessions({ ttlSeconds, absoluteTtlSeconds: 36_000 }, store, keyring)
}

/** A new user, and the session of an order as it is before the order is taken back. */
async function prepare(store: Store, before: Action[]): Promise<Subject> {
  const secretPart = newToken('session')
  const subject = { userId: crypto.randomUUID(), secretPart, id: sessionIdOf(secretPart) }
  for (const action of before) await action(sessionsOn(store, 60), subject)
  return subject
}

/** The ids in the user's list as they are stored, before a reader takes off what is over. */
function idsListed(store: Store, { userId }: Subject): Promise<string[]> {
  return store.members(`sessions:${hashToken(userId)}`)
}

/** That the session is over for good, and that the answer stays. */
async function expectTakenBack(store: Store, subject: Subject, answer: unknown): Promise<void> {
  const sessions = sessionsOn(store)
  expect(await sessions.find(tokenOf(subject.secretPart))).toBeUndefined()
  expect(await sessions.list(subject.userId)).toEqual([])
  expect(await idsListed(store, subject)).toEqual([])
  expect(await takeBack(sessions, subject)).toBe(answer)
  await expect(make(sessions, subject)).rejects.toMatchObject({ reason: 'ORDER_FINALIZED' })
  expect(await use(sessions, subject)).toBeUndefined()
}

describe('while an order is taken back,', () => {
  const races: [fact: string, before: Action[], other: Action, check: (wasLive: boolean, other: unknown) => void][] = [
    [
      'a session that is being made is not made, or made and ended',
      [],
      make,
      (wasLive, made) => {
        if (made instanceof Error) expect(made).toMatchObject({ reason: 'ORDER_FINALIZED' })
        else expect(wasLive).toBe(true)
      },
    ],
    ['a session that a retry finds is ended', [make], make, (wasLive) => expect(wasLive).toBe(true)],
    ['a session that is extended is ended', [make], use, (wasLive) => expect(wasLive).toBe(true)],
    ['a session that is listed is ended', [make], list, (wasLive) => expect(wasLive).toBe(true)],
    [
      'a session that is ended by its user is ended by one of the two',
      [make],
      end,
      (wasLive, ended) => expect(wasLive).toBe(!ended),
    ],
    [
      'a session that was ended is not made again by a retry',
      [make, end],
      make,
      (wasLive, made) => {
        expect(wasLive).toBe(false)
        expect(made).toMatchObject({ reason: 'ORDER_FINALIZED' })
      },
    ],
    [
      'a second take-back of a session is answered alike',
      [make],
      takeBack,
      (wasLive, again) => expect([wasLive, again]).toEqual([true, true]),
    ],
    [
      'a second take-back before there is a session is answered alike',
      [],
      takeBack,
      (wasLive, again) => expect([wasLive, again]).toEqual([false, false]),
    ],
  ]

  test.each(races)('%s, in every order of their steps', async (_, before, other, check) => {
    const store = await openMemory()
    const orders = await everyOrder(store, async (handle) => {
      const subject = await prepare(store, before)
      const [wasLive, outcome] = await Promise.all([
        takeBack(sessionsOn(handle), subject),
        other(sessionsOn(handle), subject).catch((thrown: unknown) => thrown),
      ])
      check(wasLive as boolean, outcome)
      await expectTakenBack(store, subject, wasLive)
    })
    expect(orders).toBeGreaterThan(5)
  })

  test.each(racedStores)(
    'a session that is being made while the list is read %s is not made, or made and ended',
    async (_, open) => {
      const store = await open()
      await everyOrder(store, async (handle) => {
        const subject = await prepare(store, [])
        const [made] = await Promise.allSettled([make(sessionsOn(handle), subject), list(sessionsOn(handle), subject)])
        expect(await takeBack(sessionsOn(store), subject)).toBe(made.status === 'fulfilled')
        await expectTakenBack(store, subject, made.status === 'fulfilled')
      })
    },
  )

  const crashes: [fact: string, before: Action[], wasLive: boolean][] = [
    ['a session that is live', [make], true],
    ['a session that is not made yet', [], false],
    ['a session that its user ended', [make, end], false],
  ]

  test.each(crashes)(
    'a process that ends at any step leaves a retry the right answer for %s',
    async (_, before, was) => {
      const store = await openMemory()
      for (const isDone of [false, true]) {
        for (let step = 1, crashed = true; crashed; step++) {
          const subject = await prepare(store, before)
          const { handle, ended } = endingAt(store, step, isDone)
          await takeBack(sessionsOn(handle), subject).catch(() => undefined)
          crashed = ended()
          expect(await takeBack(sessionsOn(store), subject)).toBe(was)
          expect(await idsListed(store, subject)).toEqual([])
          await expectTakenBack(store, subject, was)
        }
      }
    },
  )

  test('a process that ends at any step of making the session leaves none', async () => {
    const store = await openMemory()
    for (const isDone of [false, true]) {
      for (let step = 1, crashed = true; crashed; step++) {
        const subject = await prepare(store, [])
        const { handle, ended } = endingAt(store, step, isDone)
        await make(sessionsOn(handle), subject).catch(() => undefined)
        crashed = ended()
        const wasLive = (await sessionsOn(store).find(tokenOf(subject.secretPart))) !== undefined
        expect(await takeBack(sessionsOn(store), subject)).toBe(wasLive)
        expect(await idsListed(store, subject)).toEqual([])
        await expectTakenBack(store, subject, wasLive)
      }
    }
  })
})
