import { defaultLimits, type RateLimitGroup } from '../limits/limits.ts'

/** A rule of a plugin for Better Auth's rate limiter, which counts each path and client address for itself. */
export interface RateLimitRule {
  /** Seconds. */
  window: number
  max: number
  pathMatcher: (path: string) => boolean
}

/** The allowance that a group of calls has in the service, as a rule for Better Auth's rate limiter. */
export function rateLimit(group: RateLimitGroup, pathMatcher: (path: string) => boolean): RateLimitRule {
  return { window: 60, max: defaultLimits[group], pathMatcher }
}

/** A rule for calls that Better Auth's rate limiter lets through however many they are. */
export function unlimited(pathMatcher: (path: string) => boolean): RateLimitRule {
  return { window: 60, max: Number.MAX_SAFE_INTEGER, pathMatcher }
}
