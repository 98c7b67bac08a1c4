/** Listeners to one kind of event, which is looked for while there are any. */
export class Listeners<Event = void> {
  readonly #begin: () => () => void
  readonly #all = new Set<(event: Event) => void>()
  #end: (() => void) | undefined

  /** `begin` starts to look for the event, and returns a function that ends it. */
  constructor(begin: () => () => void = () => () => {}) {
    this.#begin = begin
  }

  get isEmpty(): boolean {
    return this.#all.size === 0
  }

  /** Adds a listener, which may be added twice. Returns a function that removes it. */
  add(listener: (event: Event) => void): () => void {
    const own = (event: Event): void => listener(event)
    this.#all.add(own)
    this.#end ??= this.#begin()
    return () => {
      this.#all.delete(own)
      if (this.isEmpty) this.#stop()
    }
  }

  /** Ends and begins again, if there are listeners. */
  restart(): void {
    this.#stop()
    if (!this.isEmpty) this.#end = this.#begin()
  }

  notify(event: Event): void {
    for (const listener of [...this.#all]) listener(event)
  }

  #stop(): void {
    this.#end?.()
    this.#end = undefined
  }
}
