import { applicationStepMs, applicationSteps } from '../../base/timing/time-limit.ts'
import { CountersignError, hostUnavailable, reasons } from '../../shared/errors.ts'

/** Reads an answer of the application and makes what the service goes on with. Throws a `TypeError` if it is unusable. */
export type Read<Result> = (what: string, answer: unknown) => Result

/**
 * Asks the application: a hook, or a method of a session host. `what` names the call for the log, such as
 * `resolveLogin()`.
 *
 * Rejects with HOST_UNAVAILABLE if it fails, takes longer than five seconds or answers with something that `read` refuses. What
 * it answers later is dropped. A `CountersignError` that it rejects with is meant for the caller, and stays as it is.
 */
export async function askApplication<Result>(what: string, ask: () => unknown, read: Read<Result>): Promise<Result> {
  try {
    const answer = await applicationSteps.within(
      begin(ask),
      () => new Error(`${what} did not answer within ${applicationStepMs / 1000} seconds`),
    )
    return read(what, answer)
  } catch (thrown) {
    throw isRefusal(thrown) ? thrown : hostUnavailable(thrown)
  }
}

/** A promise, whatever the application returns or throws: a value, or something that only looks like a promise. */
async function begin(ask: () => unknown): Promise<unknown> {
  return await ask()
}

/** Whether something thrown is a failure for the caller. A host in JavaScript can make one with a reason that does not exist. */
function isRefusal(thrown: unknown): boolean {
  try {
    return thrown instanceof CountersignError && Object.hasOwn(reasons, thrown.reason)
  } catch {
    // A Proxy can refuse to be looked at.
    return false
  }
}
