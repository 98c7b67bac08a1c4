import type { AuthContext } from '@better-auth/core'
import { getCurrentAdapter } from '@better-auth/core/context'
import { guarded } from './failures.ts'
import { KeyedLock } from './keyed-lock.ts'
import { markModelName } from './schema.ts'

/** One for the process: the memory adapter, which needs it, is known to one process only. */
const lock = new KeyedLock()

/** Marks that outlived their use are swept this often at most, milliseconds. */
const sweepEveryMs = 60_000
let sweptAt = 0

/**
 * Remembers in Better Auth's database what was done once, so that nobody does it again: of any number of calls with one key,
 * on any instance, one makes the mark. The database's unique index decides.
 */
export class Marks {
  readonly #context: AuthContext

  constructor(context: AuthContext) {
    this.#context = context
  }

  /** Makes a mark that is kept at least until `expiresAt`; false when it is there already. */
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

  /** As {@link make}, as a part of the transaction it is called in, which a mark that is there already makes fail. */
  async insert(key: string, expiresAt: Date): Promise<void> {
    const adapter = await getCurrentAdapter(this.#context.adapter)
    await adapter.create({ model: markModelName, data: { key, expiresAt } })
  }

  /** Whether the mark is there. Keys are never used for something else, so that one past its time still counts. */
  async has(key: string): Promise<boolean> {
    const { adapter } = this.#context
    return (await adapter.findOne({ model: markModelName, where: [{ field: 'key', value: key }] })) !== null
  }

  /** Deletes the marks that have outlived their use, now and then. */
  async sweep(): Promise<void> {
    const now = Date.now()
    if (now < sweptAt + sweepEveryMs) return
    sweptAt = now
    const { adapter } = this.#context
    await adapter.deleteMany({
      model: markModelName,
      where: [{ field: 'expiresAt', operator: 'lt', value: new Date(now) }],
    })
  }
}
