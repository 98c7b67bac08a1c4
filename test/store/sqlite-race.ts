import type { Life, Store } from '../../src/store/store.ts'

const long: Life = { ttlMs: 60_000 }
const perTurn = 10

/** What there is to win in a race for each number: a value to take, one to replace, and a key to create. */
export const prizes = ['take', 'set', 'create'] as const

/** Makes what there is to win. */
export async function prepareRace(store: Store, count: number): Promise<void> {
  const filled = prizes.filter((prize) => prize !== 'create')
  await Promise.all(
    Array.from({ length: count }, (_, i) => filled.map((prize) => store.create(`${prize}:${i}`, 'a', long))).flat(),
  )
}

/** Tries to win everything, several in each turn, and returns the keys of what was won. */
export async function raceFor(store: Store, count: number): Promise<string[]> {
  const won: string[] = []
  const note = (key: string, isWon: boolean | undefined): void => {
    if (isWon) won.push(key)
  }
  for (let first = 0; first < count; first += perTurn) {
    const steps = Array.from({ length: perTurn }, async (_, n) => {
      const i = first + n
      await Promise.all([
        // A read first: a transaction that does not begin with the lock would lose it at the write that follows.
        store.get(`set:${i}`),
        store.take(`take:${i}`).then((value) => note(`take:${i}`, value === 'a')),
        store.compareAndSet(`set:${i}`, 1, 'b', long).then((isSet) => note(`set:${i}`, isSet)),
        store.create(`create:${i}`, 'a', long).then((isCreated) => note(`create:${i}`, isCreated)),
      ])
    })
    await Promise.all(steps)
  }
  return won
}
