import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { Scene } from './scene.ts'
import { type End, scripts } from './scripts.ts'
import { type AttackerId, attackers, type Cell, type ColumnId, columns } from './table.ts'
import { type Habits, Victim, victimsComputer } from './victim.ts'

// Only the victim who opens a mail late moves it.
beforeEach(() => void vi.useFakeTimers({ toFake: ['Date'], shouldAdvanceTime: true }))
afterEach(() => void vi.useRealTimers())

const columnIds = Object.keys(columns) as ColumnId[]
const attackerIds = Object.keys(attackers) as AttackerId[]

/**
 * Runs an attack on a fresh service and a fresh victim. Resolves with how it ended, and with whether the attacker has a
 * session of the victim or, in the column for that, the victim's wallet in their own account.
 */
async function attack(id: AttackerId, column: ColumnId, habits: Partial<Habits>): Promise<End & { isVictim: boolean }> {
  const scene = await Scene.open(column)
  const victim = new Victim(scene, habits)
  const end = await scripts[id].run(scene, victim)
  const isVictim = end.token !== undefined && (await scene.hasGained(end.token, victim.wallet.address))
  return { ...end, isVictim }
}

describe.each(columnIds)('%s', (column) => {
  test('an honest person gets what they want at their own computer', async () => {
    const scene = await Scene.open(column)
    const victim = new Victim(scene)
    const token = await victim.signInAt(await victimsComputer(scene, victim))
    expect(await scene.hasGained(token, victim.wallet.address)).toBe(true)
  })

  for (const id of attackerIds) {
    const { name, cells } = attackers[id]
    const { verdict, by }: Cell = cells[column]
    switch (verdict) {
      case 'stopped':
        test(`${name}: ends with nothing, for every act of the victim`, async () => {
          expect(await attack(id, column, scripts[id].more)).toEqual({ refusal: by, isVictim: false })
        })
        break
      case 'hindered':
        test(`${name}: the attacker ends with nothing if the victim does no more than usual`, async () => {
          expect(await attack(id, column, {})).toEqual({ refusal: by, isVictim: false })
        })
        test(`${name}: the attacker succeeds if the victim does ${JSON.stringify(scripts[id].more)}`, async () => {
          expect(await attack(id, column, scripts[id].more)).toMatchObject({ isVictim: true })
        })
        break
      case 'not stopped':
        test(`${name}: the attacker succeeds`, async () => {
          expect(await attack(id, column, {})).toMatchObject({ isVictim: true })
        })
    }
  }
})

test('every attack is a real one: against some setting, it succeeds', () => {
  const harmless = attackerIds.filter((id) =>
    columnIds.every((column) => attackers[id].cells[column].verdict === 'stopped'),
  )
  expect(harmless).toEqual([])
})
