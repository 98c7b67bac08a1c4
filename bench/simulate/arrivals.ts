/** When things happen: at random, each independently of the others and of how fast they are served. */

/** A source of numbers from 0 up to 1, the same ones for the same seed. */
export function randomOf(seed: number): () => number {
  let state = seed >>> 0
  return () => {
    // Mulberry32: what counts here is that a run can be repeated.
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
}

/** Times in ms, ascending, at which something happens: a Poisson process of so many a second, thinned by `paceAt` a share of the end. */
export function* arrivals(
  perSecond: number,
  seconds: number,
  { pace, mostPace, random }: { pace: (share: number) => number; mostPace: number; random: () => number },
): Generator<number> {
  const mostPerMs = (perSecond * mostPace) / 1000
  if (mostPerMs === 0) return
  for (let at = 0; ; ) {
    at -= Math.log(1 - random()) / mostPerMs
    if (at >= seconds * 1000) return
    if (random() * mostPace < pace(at / seconds / 1000)) yield at
  }
}

/** Something that is due. */
export interface Due<Kind> {
  readonly kind: Kind
  readonly at: number
}

/** Merges what is due of several kinds, soonest first. */
export function* merged<Kind>(sources: ReadonlyMap<Kind, Iterator<number>>): Generator<Due<Kind>> {
  const heads = new Map<Kind, number>()
  const advance = (kind: Kind, source: Iterator<number>): void => {
    const next = source.next()
    if (next.done === true) heads.delete(kind)
    else heads.set(kind, next.value)
  }
  for (const [kind, source] of sources) advance(kind, source)
  while (heads.size > 0) {
    const [kind, at] = [...heads].reduce((soonest, head) => (head[1] < soonest[1] ? head : soonest))
    yield { kind, at }
    advance(kind, sources.get(kind) as Iterator<number>)
  }
}
