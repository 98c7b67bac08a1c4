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
