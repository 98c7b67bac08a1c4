import { CountersignError } from '../errors.ts'

/** Refuses a client that expects another application name than the server's own, with APP_NAME_MISMATCH. */
export function requireAppName(expected: string | undefined, own: string): void {
  if (expected === undefined || expected === own) return
  throw new CountersignError(
    'APP_NAME_MISMATCH',
    `The application name of this service is ${JSON.stringify(own)}; correct appName in the client or on the server (COUNTERSIGN_APP_NAME)`,
    { metadata: { app_name: own, setting: 'COUNTERSIGN_APP_NAME' } },
  )
}
