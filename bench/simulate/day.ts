/** What the users of a service do in a day: what the capacity is computed for, and what the simulation replays. */

/** What users do. Each is one event, however many calls it takes. */
export const actions = [
  'first sign-in',
  'sign-in',
  'order',
  'session check',
  'sign-out',
  'unused nonce',
  'unused order',
] as const

/** One of the {@link actions}. */
export type Action = (typeof actions)[number]

/** A number for each action. */
export type ByAction<T> = Readonly<Record<Action, T>>

/** A day of a service. */
export interface Day {
  readonly users: number
  /**
   * What a user does a day, on average. A sign-in counts as such whether it is the user's first or not; an order is one that signs
   * its user in.
   */
  readonly perUser: Readonly<Record<Exclude<Action, 'first sign-in'>, number>>
  /** The rate of the busiest moment, divided by the average of the day. From 1 to 2. */
  readonly peakFactor: number
  /** Time that an order is watched, in seconds, until its user has approved it. */
  readonly orderSeconds: number
  /** Time that an order is watched, in seconds, whose user never comes: the default of `orderTtlSeconds`. */
  readonly unusedOrderSeconds: number
  /** Average time for which a session stays in the store, in seconds, if it is not signed out of. */
  readonly sessionSeconds: number
}

/** The day that docs/scaling.md computes with. */
export const typicalDay: Day = {
  users: 10_000_000,
  perUser: {
    'sign-in': 0.6,
    order: 0.2,
    'session check': 10,
    'sign-out': 0.3,
    'unused nonce': 0.1,
    'unused order': 0.05,
  },
  peakFactor: 1.8,
  orderSeconds: 12,
  unusedOrderSeconds: 120,
  sessionSeconds: 7 * 86_400,
}

/**
 * How fast things happen at a moment of the day, where 1 is the average and `share` is the part of the day that is over: low at
 * its begin and end, and highest in its middle.
 */
export function paceAt({ peakFactor }: Day, share: number): number {
  return 1 - (peakFactor - 1) * Math.cos(2 * Math.PI * share)
}

/** The part of the day's events that happen between two moments of it. */
export function partOfDay({ peakFactor }: Day, from: number, to: number): number {
  const sum = (share: number): number => share - ((peakFactor - 1) * Math.sin(2 * Math.PI * share)) / (2 * Math.PI)
  return sum(to) - sum(from)
}
