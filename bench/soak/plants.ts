/**
 * Leaks that can be planted, one for each request: a timer that is not cleared, an entry in a map that is not removed.
 */
export const plants = ['timer', 'map'] as const
export type Plant = (typeof plants)[number]
