/**
 * Receives each event of a kind once it has happened. Must not throw, and should take microseconds: its caller waits
 * for it.
 */
export type Observer<Report> = (report: Report) => void

/** One observer that calls several in turn. A single one is returned as it is, so that it costs nothing more. */
export function observers<Report>(
  first: Observer<Report>,
  ...others: readonly (Observer<Report> | undefined)[]
): Observer<Report> {
  const all = [first, ...others].filter((observer) => observer !== undefined)
  if (all.length === 1) return first
  return (report) => {
    for (const observe of all) observe(report)
  }
}
