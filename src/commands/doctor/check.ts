/** How a check went. `skipped` is for one that could not be made; it is neither good nor bad. */
export type Status = 'ok' | 'warning' | 'problem' | 'skipped'

/** What a check found. Neither text contains a secret. */
export interface Finding {
  readonly status: Status
  /** What was seen, in one line. */
  readonly saw: string
  /** How to mend it. Warnings and problems have it, unless `saw` says it. */
  readonly fix?: string
}

/** A finding with the name of the check that made it. */
export interface Result extends Finding {
  readonly check: string
}

/** One check of a setup. A new one is a file in this folder and a row in checks.ts. */
export interface Check<Subject> {
  /** Its name in the report. Names stay as they are, because scripts look for them. */
  readonly name: string
  /** Names of checks further up in the list. This one is skipped unless all of them could be made and found no problem. */
  readonly needs: readonly string[]
  /** Longest time in milliseconds; after it, the signal aborts, and the check counts as a problem. */
  readonly limitMs: number
  /** Whether there is something to check in this setup. Default: in every one. */
  applies?(subject: Subject): boolean
  /** Makes the check. A failure that it does not expect may reject; it counts as a problem. */
  run(subject: Subject, signal: AbortSignal): Promise<readonly Finding[]>
}

/** A finding of a check that all is well. */
export function ok(saw: string): Finding {
  return { status: 'ok', saw }
}

/** A finding that needs attention, but keeps nobody from signing in. */
export function warning(saw: string, fix: string): Finding {
  return { status: 'warning', saw, fix }
}

/** A finding that has to be mended. */
export function problem(saw: string, fix: string): Finding {
  return { status: 'problem', saw, fix }
}

/** A check that could not be made, and why. */
export function skipped(saw: string): Finding {
  return { status: 'skipped', saw }
}
