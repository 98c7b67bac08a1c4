import type { AuthContext } from '@better-auth/core'
import { getCurrentAdapter } from '@better-auth/core/context'
import { guarded } from './failures.ts'
import { markModelName } from './schema.ts'

/**
 * Runs tasks with the same key one after the other, in this process. If the database enforces uniqueness, this only
 * saves work. Better Auth's memory adapter, which only one process can use, does not; there, this is the guarantee.
 */
export class KeyedLock {
  readonly #tails = new Map<string, Promise<unknown>>()

  /** Runs a task once all earlier ones of its key are over, and settles as the task does. */
  async run<T>(key: string, task: () => Promise<T>): Promise<T> {
    const before = this.#tails.get(key)
    const running = before === undefined ? task() : before.then(task)
    const tail = running.catch(() => {})
    this.#tails.set(key, tail)
    try {
      return await running
    } finally {
      if (this.#tails.get(key) === tail) this.#tails.delete(key)
    }
  }
}

/** One for the process: the memory adapter, which needs it, is known to one process only. */
const lock = new KeyedLock()

/** Shortest time between two sweeps of a model, in ms. */
const sweepEveryMs = 60_000

/** When the models of a database were swept last. */
const sweptAt = new WeakMap<AuthContext['adapter'], Map<string, number>>()

/** Deletes what has expired of a model of a database, at most once a minute. */
export async function sweepExpired(adapter: AuthContext['adapter'], model: string): Promise<void> {
  const now = Date.now()
  const times = sweptAt.get(adapter) ?? new Map<string, number>()
  if (now < (times.get(model) ?? 0) + sweepEveryMs) return
  sweptAt.set(adapter, times.set(model, now))
  await adapter.deleteMany({ model, where: [{ field: 'expiresAt', operator: 'lt', value: new Date(now) }] })
}

/**
 * Marks in Better Auth's database of things that must happen only once. Of any number of calls with one key, on any
 * instance, one makes the mark: the database's unique index decides.
 */
export class Marks {
  readonly #context: AuthContext

  constructor(context: AuthContext) {
    this.#context = context
  }

  /** Makes a mark that is kept at least until `expiresAt`. Resolves with false if it exists already. */
  async make(key: string, expiresAt: Date): Promise<boolean> {
    return await lock.run(key, () =>
      guarded(async () => {
        if (await this.has(key)) return false
        try {
          await this.insert(key, expiresAt)
          return true
        } catch (cause) {
          if (await this.has(key)) return false
          throw cause
        }
      }),
    )
  }

  /** As {@link make}, but within the current transaction, which fails if the mark exists already. */
  async insert(key: string, expiresAt: Date): Promise<void> {
    const adapter = await getCurrentAdapter(this.#context.adapter)
    await adapter.create({ model: markModelName, data: { key, expiresAt } })
  }

  /** Whether the mark exists. An expired one counts too, because a key is never used for anything else. */
  async has(key: string): Promise<boolean> {
    const { adapter } = this.#context
    return (await adapter.findOne({ model: markModelName, where: [{ field: 'key', value: key }] })) !== null
  }

  /** Deletes expired marks, at most once a minute. */
  async sweep(): Promise<void> {
    await sweepExpired(this.#context.adapter, markModelName)
  }
}
