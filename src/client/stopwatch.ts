/** Measures the time since it was made. */
export class Stopwatch {
  readonly #wall = Date.now()
  readonly #monotonic = performance.now()

  /** Time since then, in milliseconds; rather too long than too short. */
  get elapsedMs(): number {
    // The wall clock may be set back; the monotonic clock may stand still while the device sleeps.
    return Math.max(Date.now() - this.#wall, performance.now() - this.#monotonic)
  }
}
