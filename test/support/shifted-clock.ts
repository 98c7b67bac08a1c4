// Loaded before a service starts (node --import): its machine's wall clock is ahead by CLOCK_AHEAD_MS from then on.
const aheadMs = Number(process.env.CLOCK_AHEAD_MS)
const RealDate = Date

class ShiftedDate extends RealDate {
  constructor(...args: [] | [number]) {
    super(...((args.length === 0 ? [ShiftedDate.now()] : args) as [number]))
  }

  static override now(): number {
    return RealDate.now() + aheadMs
  }
}

globalThis.Date = ShiftedDate as DateConstructor
